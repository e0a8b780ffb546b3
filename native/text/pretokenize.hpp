// Splits UTF-8 text into words, within which BPE merges: the patterns of GPT-2, GPT-4 and Llama 3 as hand-written
// scanners. src/chainrule/text/splitting/pretokenize.py has them as regular expressions. A scanner reads each character at most
// three times, so the time is linear in the length of any text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace chainrule {

enum Kind : uint8_t { OTHER, LETTER, NUMBER, SPACE };
enum class Pattern { GPT2, GPT4, LLAMA3, TEXTBOOK };  // in the order of PATTERNS in pretokenize.py; the last is \S+|\s

using Bytes = const uint8_t*;
using Span = std::pair<Bytes, Bytes>;

inline std::string_view as_text(Bytes begin, Bytes end) {
    return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
}

struct Char {
    Kind kind;
    uint8_t size;  // in bytes
};

// The kind of every code point, as a table of pages of 256; equal pages are stored once.
class Classes {
public:
    Classes(const int32_t* ranges, size_t count);  // rows of (first, last, kind)

    // The character at p < end. A byte that does not begin a valid character counts as one of kind OTHER.
    Char read(Bytes p, Bytes end) const {
        if (*p < 0x80) return {pages_[0][*p], 1};
        return read_wide(p, end);
    }

    Bytes skip(Kind kind, Bytes p, Bytes end) const {  // past all characters of that kind
        while (p < end) {
            const Char c = read(p, end);
            if (c.kind != kind) break;
            p += c.size;
        }
        return p;
    }

private:
    Char read_wide(Bytes p, Bytes end) const;

    std::vector<std::array<Kind, 256>> pages_;  // the first is that of ASCII
    std::array<uint16_t, 0x1100> page_of_;
};

// The end of 's 't 'm 'd 'll 've 're at p, or p. Without regard to case, ſ (U+017F) is an s too.
template <bool any_case>
inline Bytes contraction(Bytes p, Bytes end) {
    if (*p != '\'' || end - p < 2) return p;
    auto letter = [&](int i) { return any_case ? p[i] | 0x20 : p[i]; };
    switch (letter(1)) {
        case 's': case 't': case 'm': case 'd': return p + 2;
        case 'l': return end - p > 2 && letter(2) == 'l' ? p + 3 : p;
        case 'v': case 'r': return end - p > 2 && letter(2) == 'e' ? p + 3 : p;
    }
    return any_case && end - p > 2 && p[1] == 0xC5 && p[2] == 0xBF ? p + 3 : p;
}

// The end of all patterns, \s+(?!\S)|\s+, for the white space [p, run_end) whose last character begins at `last`: that
// character belongs to the word that follows, unless it is the only one or the text ends.
inline Bytes white_space(Bytes p, Bytes last, Bytes run_end, Bytes end) {
    return run_end == end || last == p ? run_end : last;
}

template <Pattern pattern>
struct Scanner;

template <>
struct Scanner<Pattern::GPT2> {
    static Bytes next(const Classes& classes, Bytes p, Bytes end) {
        if (Bytes q = contraction<false>(p, end); q != p) return q;
        const Bytes word = *p == ' ' && end - p > 1 ? p + 1 : p;
        Char c = classes.read(word, end);
        if (c.kind != SPACE) return classes.skip(c.kind, word + c.size, end);
        Bytes last = p, q = p;
        while (q < end && (c = classes.read(q, end)).kind == SPACE) last = q, q += c.size;
        return white_space(p, last, q, end);
    }
};

template <bool whole_tail>  // white space at the end of the text is one word, even with line breaks in it
struct NewScanner {
    static Bytes next(const Classes& classes, Bytes p, Bytes end) {
        auto ends_line = [](uint8_t c) { return c == '\r' || c == '\n'; };
        if (Bytes q = contraction<true>(p, end); q != p) return q;
        Char c = classes.read(p, end);
        const Bytes after = p + c.size;
        if (c.kind == LETTER) return classes.skip(LETTER, after, end);
        if (c.kind == NUMBER) return digits(classes, after, end);
        const Char second = after < end ? classes.read(after, end) : Char{SPACE, 0};
        if (second.kind == LETTER && !ends_line(*p)) return classes.skip(LETTER, after + second.size, end);
        if (c.kind == OTHER || (*p == ' ' && second.kind == OTHER)) {
            Bytes q = classes.skip(OTHER, after, end);
            while (q < end && ends_line(*q)) ++q;
            return q;
        }
        Bytes last = p, q = p, line = p;  // line: after the last line break
        while (q < end && (c = classes.read(q, end)).kind == SPACE) {
            last = q;
            q += c.size;
            if (ends_line(*last)) line = q;
        }
        if (whole_tail && q == end) return q;
        return line != p ? line : white_space(p, last, q, end);
    }

    static Bytes digits(const Classes& classes, Bytes p, Bytes end) {  // up to two more
        for (int i = 0; i < 2 && p < end; ++i) {
            const Char c = classes.read(p, end);
            if (c.kind != NUMBER) break;
            p += c.size;
        }
        return p;
    }
};
template <>
struct Scanner<Pattern::GPT4> : NewScanner<true> {};
template <>
struct Scanner<Pattern::LLAMA3> : NewScanner<false> {};

template <>
struct Scanner<Pattern::TEXTBOOK> {
    static Bytes next(const Classes& classes, Bytes p, Bytes end) {
        Char c = classes.read(p, end);
        if (c.kind == SPACE) return p + c.size;
        while (p < end && (c = classes.read(p, end)).kind != SPACE) p += c.size;
        return p;
    }
};

template <Pattern pattern, class Body>
void scan(const Classes& classes, Span text, Body&& body) {
    for (Bytes p = text.first; p < text.second;) {
        const Bytes next = Scanner<pattern>::next(classes, p, text.second);
        body(p, next);
        p = next;
    }
}

template <class Body>  // body(begin, end) for each word
void for_words(const Classes& classes, Pattern pattern, Span text, Body&& body) {
    switch (pattern) {
        case Pattern::GPT2: return scan<Pattern::GPT2>(classes, text, body);
        case Pattern::GPT4: return scan<Pattern::GPT4>(classes, text, body);
        case Pattern::LLAMA3: return scan<Pattern::LLAMA3>(classes, text, body);
        case Pattern::TEXTBOOK: return scan<Pattern::TEXTBOOK>(classes, text, body);
    }
}

// Cuts a text for the threads where every pattern ends a word: between an ASCII letter and a space or line break. A text
// without such a place stays whole.
std::vector<Span> split_for_threads(Span text);

}  // namespace chainrule
