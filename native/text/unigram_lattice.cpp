// The lattice of all segmentations of words: sums over all of them, and the best.
#include <algorithm>
#include <cmath>
#include <limits>

#include "text/unigram_training.hpp"

namespace chainrule {

void Lattice::add(std::string_view word, const Trie& trie) {
    const size_t first = edges_.size();
    for (size_t start = 0; start < word.size(); start += utf8_size(static_cast<uint8_t>(word[start]))) {
        uint32_t node = 0;
        for (size_t end = start; end < word.size();) {
            node = trie.step(node, static_cast<uint8_t>(word[end++]));
            if (node == Trie::NONE) break;
            if (trie.value(node) != Trie::NONE)
                edges_.push_back(trie.value(node) | static_cast<Edge>(end - start - 1) << 25);
        }
        edges_.back() |= LAST;
    }
    words_.push_back({first, edges_.size(), static_cast<uint32_t>(word.size())});
}

void Lattice::keep(const std::vector<uint32_t>& renamed) {
    size_t out = 0;
    for (Word& word : words_) {
        const size_t begin = out;
        for (size_t i = word.begin; i < word.end; ++i) {
            const Edge edge = edges_[i];
            const uint32_t piece = renamed[Lattice::piece(edge)];
            if (piece != Trie::NONE) edges_[out++] = (edge & (LAST - MOST_PIECES)) | piece;
            if (edge & LAST) edges_[out - 1] |= LAST;  // the letter at a start is never pruned
        }
        word.begin = begin;
        word.end = out;
    }
    edges_.resize(out);
}

void Lattice::keep_words(const std::vector<uint32_t>& renamed) {
    size_t out = 0;
    for (size_t i = 0; i < words_.size(); ++i)
        if (renamed[i] != Trie::NONE) words_[out++] = words_[i];
    words_.resize(out);
}

namespace {

constexpr size_t REACH = 64;                     // bytes of the longest piece
constexpr int SHIFT = 300;                       // a probability below 2^-SHIFT is scaled up by 2^SHIFT
constexpr double TINY = 4.909093465297727e-91;   // 2^-SHIFT

void scale(std::vector<double>& values, size_t place, size_t n) {
    for (size_t i = place; i <= std::min(n, place + REACH); ++i) values[i] = std::ldexp(values[i], SHIFT);
}

}  // namespace

void Expectation::add(double* expected, const Edge* edge, size_t n, double weight, const double* probability) {
    forward(edge, n, probability);
    const double share = weight / alpha_[n];
    beta_.assign(n + 1, 0);
    beta_[n] = 1;
    int shift = 0;  // of beta, as shift_ is of alpha
    for (size_t k = starts_.size(); k-- > 0;) {
        const Start& start = starts_[k];
        const int apart = shift_ - start.shift - shift;
        const double before = share * alpha_[start.place];
        const double factor = apart ? std::ldexp(before, SHIFT * apart) : before;
        double sum = 0;
        for (const Edge* e = start.edge;; ++e) {
            const uint32_t piece = Lattice::piece(*e);
            const double rest = probability[piece] * beta_[start.place + Lattice::size(*e)];
            sum += rest;
            expected[piece] += factor * rest;
            if (*e & Lattice::LAST) break;
        }
        beta_[start.place] = sum;
        if (sum < TINY) scale(beta_, start.place, n), ++shift;
    }
}

void Expectation::forward(const Edge* edge, size_t n, const double* probability) {
    alpha_.assign(n + 1, 0);
    alpha_[0] = 1;
    starts_.clear();
    shift_ = 0;
    for (size_t place = 0; place < n;) {
        if (alpha_[place] < TINY) scale(alpha_, place, n), ++shift_;
        starts_.push_back({place, edge, shift_});
        const size_t letter = Lattice::size(*edge);
        const double before = alpha_[place];
        do
            alpha_[place + Lattice::size(*edge)] += before * probability[Lattice::piece(*edge)];
        while (!(*edge++ & Lattice::LAST));
        place += letter;
    }
}

const std::vector<uint32_t>& BestCut::cut(const Edge* edge, size_t n, const double* score, uint32_t without) {
    best_.assign(n + 1, {-std::numeric_limits<double>::infinity(), 0});
    best_[0].first = 0;
    for (size_t place = 0; place < n;) {
        const size_t letter = Lattice::size(*edge);
        const double before = best_[place].first;
        do {
            const uint32_t piece = Lattice::piece(*edge);
            auto& there = best_[place + Lattice::size(*edge)];
            if (piece != without && before + score[piece] > there.first) there = {before + score[piece], *edge};
        } while (!(*edge++ & Lattice::LAST));
        place += letter;
    }
    pieces_.clear();
    for (size_t end = n; end > 0; end -= Lattice::size(best_[end].second))
        pieces_.push_back(Lattice::piece(best_[end].second));
    return pieces_;
}

}  // namespace chainrule
