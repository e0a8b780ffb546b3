#include "text/pretokenize.hpp"

namespace chainrule {

std::vector<Span> split_for_threads(Span text) {
    constexpr size_t PART_BYTES = 1 << 18;
    auto letter = [](uint8_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
    std::vector<Span> found;
    auto [begin, end] = text;
    while (begin < end) {
        Bytes cut = static_cast<size_t>(end - begin) > PART_BYTES ? begin + PART_BYTES : end;
        while (cut < end && !(letter(cut[-1]) && (*cut == ' ' || *cut == '\n'))) ++cut;
        found.emplace_back(begin, cut);
        begin = cut;
    }
    return found;
}

}  // namespace chainrule
