// Regular expressions that split text into words, run by backtracking over UTF-8. src/chainrule/text/unicode/programs.py
// compiles them; they have no loops but spans of one set of characters, so that a match visits each instruction once.
#pragma once

#include "text/classes.hpp"

namespace chainrule {

class Expressions {
public:
    // SPAN: from `least` to `most` characters of `set`, as many as there are; gives some back unless `keeps`.
    // EITHER: what follows, or else from `target` on. NOT_AHEAD: no character of `set` follows.
    enum Operation : int32_t { SPAN, EITHER, JUMP, NOT_AHEAD, TEXT_END, LINE_END, MATCH };
    struct Instruction {
        int32_t operation, set_or_target, least, most, keeps;
    };
    static constexpr size_t MOST = 256;  // instructions; a match keeps at most one place to return to for each

    // sets[kind] has bit s if the characters of that kind are in set s. Alternative i belongs to expression
    // alternatives[2 i], begins at instruction alternatives[2 i + 1] and at a character of a kind with begins[256 i + kind].
    Expressions(const uint64_t* sets, std::vector<Instruction> code, const int32_t* alternatives, const uint8_t* begins,
                size_t count);

    // body(begin, end) for each word: matches of the first expression and what is between them, cut by the next one.
    template <class Body>
    void split(const Classes& classes, Span text, Body&& body, size_t step = 0) const {
        if (step == steps_.size()) {
            body(text.first, text.second);
            return;
        }
        const Bytes end = text.second;
        Bytes begin = text.first;
        for (Bytes p = begin; p < end;) {
            const Char c = classes.read(p, end);
            const Bytes stop = match(classes, steps_[step], c.kind, p, end);
            if (!stop) {
                p += c.size;
                continue;
            }
            if (begin < p) split(classes, {begin, p}, body, step + 1);
            split(classes, {p, stop}, body, step + 1);
            begin = p = stop;
        }
        if (begin < end) split(classes, {begin, end}, body, step + 1);
    }

private:
    struct Step {
        std::vector<size_t> starts;                // of its alternatives
        std::array<uint64_t, 256> of_kind = {};  // bit i: alternative i may begin with such a character
    };

    // The end of the first alternative that matches at p, or null.
    Bytes match(const Classes& classes, const Step& step, Kind kind, Bytes p, Bytes end) const {
        for (uint64_t left = step.of_kind[kind]; left; left &= left - 1)
            if (const Bytes stop = run(classes, step.starts[__builtin_ctzll(left)], p, end)) return stop;
        return nullptr;
    }
    Bytes run(const Classes& classes, size_t at, Bytes p, Bytes end) const;
    bool has(Kind kind, int32_t set) const { return sets_[kind] >> set & 1; }

    std::array<uint64_t, 256> sets_;
    std::vector<Instruction> code_;
    std::vector<Step> steps_;
};

}  // namespace chainrule
