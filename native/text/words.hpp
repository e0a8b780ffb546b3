// Words as tokens: src/chainrule/text/words.py and lowercase_words.py define a word. Strings are UTF-8.
#pragma once

#include <algorithm>

#include "text/bpe.hpp"

namespace chainrule {

// In the order of the numbers of WordRule in word_rules.py.
enum class WordRule {
    MARKS,    // letters and digits; punctuation marks and line breaks are words of their own
    LETTERS,  // letters only
};

// Bytes of the apostrophe at p, ' or ’; 0 if it is another character.
inline size_t apostrophe(Bytes p, Bytes end) {
    if (*p == '\'') return 1;
    return end - p > 2 && p[0] == 0xE2 && p[1] == 0x80 && p[2] == 0x99 ? 3 : 0;
}

// body(begin, end) for each word. Reads each character at most three times.
template <WordRule rule, class Body>
void scan_words(const Classes& classes, Span text, Body&& body) {
    const Bytes end = text.second;
    auto in_word = [&](Bytes p, Char& c) {
        if (p == end) return false;
        c = classes.read(p, end);
        return c.kind == LETTER || (rule == WordRule::MARKS && c.kind == NUMBER);
    };
    for (Bytes p = text.first, next; p < end; p = next) {
        Char c;
        if (!in_word(p, c)) {
            next = p + std::min(utf8_size(*p), static_cast<size_t>(end - p));  // a lone surrogate is one character
            if (rule == WordRule::MARKS && (c.kind == OTHER || *p == '\n')) body(p, next);
            continue;
        }
        for (next = p + c.size; next < end;) {
            if (!in_word(next, c)) {
                const size_t size = apostrophe(next, end);
                if (!size || !in_word(next + size, c)) break;
                next += size;
            }
            next += c.size;
        }
        body(p, next);
    }
}

template <class Body>
void for_words(const Classes& classes, WordRule rule, Span text, Body&& body) {
    if (rule == WordRule::MARKS)
        scan_words<WordRule::MARKS>(classes, text, body);
    else
        scan_words<WordRule::LETTERS>(classes, text, body);
}

class WordCounter {
public:
    WordCounter(std::shared_ptr<const Classes> classes, WordRule rule) : classes_(std::move(classes)), rule_(rule) {}
    void add(const std::vector<Span>& texts);
    // Up to `limit` words that occur at least `least` times, most frequent first, equally frequent ones in alphabetical
    // order.
    std::vector<std::string> most_frequent(int64_t least, size_t limit) const;

private:
    std::shared_ptr<const Classes> classes_;
    WordRule rule_;
    TextCounts counts_;
};

class WordEncoder {
public:
    // Words and their ids; any other word is unknown.
    WordEncoder(std::shared_ptr<const Classes> classes, WordRule rule, const Vocabulary& words,
                std::vector<int32_t> ids, int32_t unknown);
    std::vector<int32_t> encode(std::string_view text) const;

private:
    std::shared_ptr<const Classes> classes_;
    WordRule rule_;
    Numbering words_;
    std::vector<int32_t> ids_;  // by the numbers of the words
    int32_t unknown_;
    mutable FreeList<WordCache> caches_;
};

}  // namespace chainrule
