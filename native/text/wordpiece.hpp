// WordPiece, the tokenizer of BERT: src/chainrule/text/wordpiece.py and normalize.py define it. Strings are UTF-8.
#pragma once

#include <array>
#include <memory>
#include <shared_mutex>

#include "text/bpe.hpp"

namespace chainrule {

// BERT's normalization: a table from a character to its replacement, in which spaces end words.
class BertTable {
public:
    std::vector<int32_t> missing(std::string_view text) const;  // its characters that are not in the table
    void add(uint32_t code, std::string_view replacement);

    // body(std::string_view word) for each word. The table must have all characters; `word` is a buffer.
    template <class Body>
    void for_words(Span text, std::string& word, Body&& body) const;

    mutable std::shared_mutex mutex;  // shared by readers, exclusive while a character is added

private:
    static constexpr uint8_t MISSING = 255;
    struct Entry {
        uint32_t begin = 0;
        uint8_t size = MISSING;
    };
    using Page = std::array<Entry, 256>;
    const Entry& entry(uint32_t code) const {
        static const Entry none;
        const auto& page = pages_[code >> 8];
        return page ? (*page)[code & 255] : none;
    }

    std::array<std::unique_ptr<Page>, (CODES >> 8)> pages_;
    std::string replacements_;
    std::array<char, 128> letters_{};  // replacement of an ASCII character, if it is one byte and not a space
};

template <class Body>
void BertTable::for_words(Span text, std::string& word, Body&& body) const {
    word.clear();
    auto finish = [&] {
        if (!word.empty()) body(std::string_view(word));
        word.clear();
    };
    for (Bytes p = text.first; p < text.second;) {
        if (*p < 128 && letters_[*p]) {
            word.push_back(letters_[*p++]);
            continue;
        }
        const size_t size = std::min(utf8_size(*p), static_cast<size_t>(text.second - p));
        const Entry& found = entry(utf8_code(p, size));
        p += size;
        if (found.size == MISSING) continue;
        for (size_t i = 0; i < found.size; ++i) {
            const char byte = replacements_[found.begin + i];
            if (byte == ' ')
                finish();
            else
                word.push_back(byte);
        }
    }
    finish();
}

class WordPieceEncoder {
public:
    // Special tokens have no bytes. Words of more than `most` characters are unknown.
    WordPieceEncoder(std::shared_ptr<const BertTable> table, const Vocabulary& vocabulary, std::string_view prefix,
                     int32_t unknown, size_t most);
    std::vector<int32_t> encode(std::string_view text) const;

private:
    struct Pieces {  // that begin a word, or continue one
        Pieces(const Vocabulary& vocabulary, std::string_view prefix);
        std::vector<int32_t> ids;  // by the values of the trie
        std::unique_ptr<Trie> tree;
    };
    void cut(std::string_view word, std::vector<int32_t>& ids) const;

    std::shared_ptr<const BertTable> table_;
    Pieces first_, inner_;
    int32_t unknown_;
    size_t most_;
    mutable FreeList<WordCache> caches_;
};

class WordPieceTrainer {
public:
    WordPieceTrainer(std::shared_ptr<const BertTable> table, std::string prefix);
    void add(const std::vector<Span>& texts);
    void add(const WordCounts& counted) { counts_.add(counted); }
    WordCounts counts() const { return counts_.total(); }
    std::vector<std::string> alphabet() const;  // the characters as pieces, sorted
    // The tokens of up to `limit` merges of pairs that occur `least` times or more; with 0 the bound falls, see
    // src/chainrule/text/training/wordpiece.py.
    std::vector<std::string> train(size_t limit, int64_t least) const;

private:
    std::shared_ptr<const BertTable> table_;
    std::string prefix_;
    TextCounts counts_;
};

}  // namespace chainrule
