// The Unigram tokenizer: every piece has a probability; a text is segmented so that their product is greatest. Training
// is expectation maximization over all segmentations, with pruning; the reference is
// src/chainrule/text/training/unigram.py. Strings are UTF-8.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "text/word_counts.hpp"

namespace chainrule {

// Splits a text into units that no piece crosses: a run of line breaks, or spaces with the letters that follow them.
template <class Body>  // body(std::string_view unit)
void for_units(std::string_view text, Body&& body) {
    size_t begin = 0;
    while (begin < text.size()) {
        size_t end = begin;
        if (text[begin] == '\n') {
            while (end < text.size() && text[end] == '\n') ++end;
        } else {
            while (end < text.size() && text[end] == ' ') ++end;
            while (end < text.size() && text[end] != ' ' && text[end] != '\n') ++end;
        }
        body(text.substr(begin, end - begin));
        begin = end;
    }
}

struct UnigramPieces {
    std::vector<std::string> pieces;
    std::vector<double> scores;  // log probabilities
};

struct UnigramSettings {
    size_t pieces;        // wanted
    double coverage;      // fraction of the text whose characters must be pieces
    size_t seeds;         // candidates to start from
    size_t most_letters;  // of a piece
    double shrink;        // fraction of the pieces that a round of pruning keeps
    int iterations;       // of expectation maximization between two rounds
};

class UnigramTrainer {
public:
    void add(std::string_view text);
    void add(const WordCounts& counted) {
        for (uint32_t i = 0; i < counted.words.size(); ++i) units_.add(counted.words.key(i), counted.counts[i]);
    }
    const WordCounts& counts() const { return units_; }
    UnigramPieces train(const UnigramSettings& settings) const;

private:
    WordCounts units_;
};

class UnigramEncoder {
public:
    // pieces must be sorted; bytes are the ids of the 256 byte tokens, all -1 if there are none. With by_units, for
    // pieces that cross no unit, each unit is segmented by itself and cached.
    UnigramEncoder(std::vector<std::string> pieces, std::vector<int32_t> ids, std::vector<double> scores,
                   int32_t unknown, std::array<int32_t, 256> bytes, bool by_units);
    std::vector<int32_t> encode(std::string_view text);

private:
    void cut(std::string_view text);
    void append(std::vector<int32_t>& out, const int32_t* ids, size_t count) const;

    std::vector<std::string> pieces_;
    std::vector<int32_t> ids_;
    std::vector<double> scores_;
    std::unique_ptr<Trie> trie_;
    int32_t unknown_;
    std::array<int32_t, 256> bytes_;
    bool by_units_;
    double unknown_score_;

    std::mutex busy_;
    Numbering units_;                                // in the cache
    std::vector<std::pair<size_t, size_t>> places_;  // of their ids in cached_: first, count
    std::vector<int32_t> cached_;
    struct Step {
        double score;
        uint32_t size;   // bytes of the last piece
        int32_t piece;   // or -1: an unknown character
    };
    std::vector<Step> best_;     // by end position
    std::vector<int32_t> cut_;   // the result of cut()
};

}  // namespace chainrule
