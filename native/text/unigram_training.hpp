// The two halves of training Unigram: seed pieces, and expectation maximization with pruning.
#pragma once

#include "text/unigram.hpp"

namespace chainrule {

using Words = std::vector<std::pair<std::string, uint64_t>>;  // distinct, with their counts

struct Seed {
    std::string text;
    double score;
};

std::vector<Seed> frequent_letters(const Words& units, double coverage);
Words split_at_unknown(const Words& units, const std::vector<Seed>& letters);
std::vector<Seed> frequent_strings(const Words& words, size_t most_letters, size_t limit);

// All segmentations of some words: for each word and each start in it, the pieces that fit there.
class Lattice {
public:
    // A piece at a start: its number, its bytes, and whether it is the last there. The shortest comes first, a letter.
    using Edge = uint32_t;
    static constexpr Edge LAST = 1u << 31, MOST_PIECES = 1u << 25;
    static size_t size(Edge edge) { return (edge >> 25 & 63) + 1; }
    static uint32_t piece(Edge edge) { return edge & (MOST_PIECES - 1); }

    void add(std::string_view word, const Trie& trie);
    void keep(const std::vector<uint32_t>& renamed);  // piece -> its new number, or Trie::NONE if it was pruned
    void keep_words(const std::vector<uint32_t>& renamed);
    size_t words() const { return words_.size(); }
    size_t bytes(size_t word) const { return words_[word].bytes; }
    const Edge* edges(size_t word) const { return edges_.data() + words_[word].begin; }

private:
    struct Word {
        size_t begin, end;
        uint32_t bytes;
    };
    std::vector<Edge> edges_;
    std::vector<Word> words_;
};

using Edge = Lattice::Edge;

// The forward-backward sums over all segmentations of a word. Those of long words are scaled against underflow.
class Expectation {
public:
    // expected[piece] += weight times the expected count of the piece in the word of n bytes
    void add(double* expected, const Edge* edge, size_t n, double weight, const double* probability);

private:
    struct Start {
        size_t place;
        const Edge* edge;
        int shift;  // how often alpha has been scaled so far
    };
    void forward(const Edge* edge, size_t n, const double* probability);

    std::vector<double> alpha_, beta_;  // sums over the segmentations before a place, and after it
    std::vector<Start> starts_;
    int shift_;
};

class BestCut {
public:
    // The pieces of the best segmentation of a word of n bytes, last first. `without` is a piece not to be used.
    const std::vector<uint32_t>& cut(const Edge* edge, size_t n, const double* score, uint32_t without = Trie::NONE);

private:
    std::vector<std::pair<double, Edge>> best_;
    std::vector<uint32_t> pieces_;
};

}  // namespace chainrule
