#include "text/expressions.hpp"

#include <algorithm>
#include <stdexcept>

namespace chainrule {
namespace {

// The beginning of the character that ends at p. UTF-8 is read alike in both directions: no byte that begins a character
// is inside of another one.
Bytes before(const Classes& classes, Bytes p, Bytes begin, Bytes end) {
    for (int size = 4; size > 1; --size)
        if (p - begin >= size && classes.read(p - size, end).size == size) return p - size;
    return p - 1;
}

}  // namespace

Expressions::Expressions(const uint64_t* sets, std::vector<Instruction> code, const int32_t* alternatives,
                         const uint8_t* begins, size_t count)
    : code_(std::move(code)) {
    std::copy_n(sets, sets_.size(), sets_.begin());
    const auto wrong = [] { throw std::invalid_argument("expressions must be instructions that end in MATCH"); };
    if (code_.empty() || code_.size() > MOST || code_.back().operation != MATCH) wrong();
    for (const Instruction& i : code_) {
        const bool jumps = i.operation == EITHER || i.operation == JUMP;
        const int32_t limit = jumps ? static_cast<int32_t>(code_.size()) : 64;
        if (i.operation < SPAN || i.operation > MATCH || i.set_or_target < 0 || i.set_or_target >= limit) wrong();
        if (jumps && i.set_or_target <= &i - code_.data()) wrong();  // forward, so that every match ends
    }
    for (size_t i = 0; i < count; ++i) {
        const size_t step = static_cast<size_t>(alternatives[2 * i]), start = static_cast<size_t>(alternatives[2 * i + 1]);
        if (step > steps_.size() || start >= code_.size()) wrong();
        if (step == steps_.size()) steps_.emplace_back();
        if (steps_[step].starts.size() == 64) wrong();
        for (size_t kind = 0; kind < 256; ++kind)
            if (begins[256 * i + kind]) steps_[step].of_kind[kind] |= uint64_t{1} << steps_[step].starts.size();
        steps_[step].starts.push_back(start);
    }
}

Bytes Expressions::run(const Classes& classes, size_t at, Bytes p, Bytes end) const {
    struct Place {  // to return to: instruction `at`, with a span that may end before p, but not before `least`
        size_t at;
        Bytes p, least;
    };
    std::array<Place, MOST> places;
    size_t depth = 0;
    for (;;) {
        const Instruction& i = code_[at++];
        bool goes_on = true;
        switch (i.operation) {
            case SPAN: {
                Bytes q = p, least = i.least ? nullptr : p;
                for (int32_t count = 0; count < i.most && q < end;) {
                    const Char c = classes.read(q, end);
                    if (!has(c.kind, i.set_or_target)) break;
                    q += c.size;
                    if (++count == i.least) least = q;
                }
                goes_on = least != nullptr;
                if (goes_on && !i.keeps && q > least) places[depth++] = {at, q, least};
                p = q;
                break;
            }
            case EITHER: places[depth++] = {static_cast<size_t>(i.set_or_target), p, nullptr}; break;
            case JUMP: at = static_cast<size_t>(i.set_or_target); break;
            case NOT_AHEAD: goes_on = p == end || !has(classes.read(p, end).kind, i.set_or_target); break;
            case TEXT_END: goes_on = p == end; break;
            case LINE_END: goes_on = p == end || *p == '\n'; break;
            default: return p;
        }
        if (goes_on) continue;
        if (!depth) return nullptr;
        Place& place = places[depth - 1];
        if (place.least) place.p = before(classes, place.p, place.least, end);
        at = place.at, p = place.p;
        if (!place.least || place.p == place.least) --depth;
    }
}

}  // namespace chainrule
