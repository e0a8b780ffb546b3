#include "text/classes.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace chainrule {

Classes::Classes(const int32_t* ranges, size_t count) {
    std::vector<Kind> kinds(0x110000, OTHER);
    for (size_t i = 0; i < count; ++i) {
        const int32_t first = ranges[3 * i], last = ranges[3 * i + 1], kind = ranges[3 * i + 2];
        if (first < 0 || last < first || last >= 0x110000 || kind < 0 || kind > UINT8_MAX)
            throw std::invalid_argument("ranges of characters must be (first, last, kind)");
        std::fill(kinds.begin() + first, kinds.begin() + last + 1, static_cast<Kind>(kind));
    }
    std::map<std::array<Kind, 256>, uint16_t> known;
    for (size_t i = 0; i < page_of_.size(); ++i) {
        std::array<Kind, 256> page;
        std::copy_n(kinds.begin() + 256 * i, 256, page.begin());
        const auto [place, fresh] = known.try_emplace(page, static_cast<uint16_t>(pages_.size()));
        if (fresh) pages_.push_back(page);
        page_of_[i] = place->second;
    }
}

Char Classes::read_wide(Bytes p, Bytes end) const {
    auto tail = [&](int i) { return end - p > i && (p[i] & 0xC0) == 0x80; };
    const uint32_t head = *p;
    uint32_t code = 0;
    uint8_t size = 1;
    if (head >= 0xC2 && head < 0xE0 && tail(1)) {
        code = (head & 0x1F) << 6 | (p[1] & 0x3F);
        size = 2;
    } else if (head >= 0xE0 && head < 0xF0 && tail(1) && tail(2)) {
        code = (head & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) size = 3;
    } else if (head >= 0xF0 && head < 0xF5 && tail(1) && tail(2) && tail(3)) {
        code = (head & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | (p[3] & 0x3F);
        if (code >= 0x10000 && code < 0x110000) size = 4;
    }
    return size == 1 ? Char{OTHER, 1} : Char{pages_[page_of_[code >> 8]][code & 255], size};
}

}  // namespace chainrule
