// Repeated merging of token pairs in words, shared by the training of BPE and WordPiece. An index of the occurrences of
// each pair makes a merge cost what it changes, so BPE training is O(n log n) in the size of the distinct words. Pieces in
// src/chainrule/text/training/merges.py is the reference.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "text/word_counts.hpp"

namespace chainrule {

struct Merge {
    int32_t left, right, merged;
    int32_t priority;  // the lowest merges first, the leftmost among equals
};

struct TokenPair {
    int32_t left, right;
    bool operator==(const TokenPair& other) const { return left == other.left && right == other.right; }
    bool operator<(const TokenPair& other) const {
        return left != other.left ? left < other.left : right < other.right;
    }
};

// Writes the tokens of a word before any merge.
using Spelling = std::function<void(std::string_view word, std::vector<int32_t>& ids)>;

// Numbers pairs of tokens 0, 1, 2 ... in the order of first use.
class PairNumbers {
public:
    uint32_t of(TokenPair pair);
    size_t size() const { return count_; }

private:
    static constexpr uint32_t NONE = UINT32_MAX;
    struct Slot {
        TokenPair pair{0, 0};
        uint32_t number = NONE;
    };
    size_t place(TokenPair pair) const;
    void grow();

    std::vector<Slot> slots_{size_t{1} << 16};
    int shift_ = 64 - 16;
    uint32_t count_ = 0;
};

// Every merge creates a new token: equal characters are always split alike, so no other pair gives the same token. Hence
// a pair appears only while the newer of its tokens is created. Later its count can only fall, and its places are sorted.
class Merger {
public:
    Merger(const WordCounts& words, const Spelling& spelling);

    // Replaces every occurrence of the pair by `merged`, from left to right; returns their number, weighted by words.
    int64_t merge(uint32_t number, int32_t merged);

    size_t pairs() const { return pair_.size(); }
    TokenPair pair(uint32_t number) const { return pair_[number]; }
    int64_t count(uint32_t number) const { return count_[number]; }
    std::vector<uint32_t>& fresh() { return fresh_; }  // pairs that appeared since the caller last cleared it

    template <class Body>
    void for_tokens(Body&& body) const {  // body(token, how often), before any merge
        for (size_t i = 0; i < token_.size(); ++i) body(token_[i], times_[word_[i]]);
    }

private:
    static constexpr uint32_t NONE = UINT32_MAX;
    TokenPair pair_at(uint32_t i) const { return {token_[i], token_[after_[i]]}; }
    void add_word(const std::vector<int32_t>& tokens, int64_t count);
    void vanish(uint32_t i) { count_[numbers_.of(pair_at(i))] -= times_[word_[i]]; }
    void appear(uint32_t i);

    std::vector<int32_t> token_;                   // -1: merged into the token before it
    std::vector<uint32_t> before_, after_, word_;  // of each place
    std::vector<int64_t> times_;                   // of each word
    PairNumbers numbers_;
    std::vector<TokenPair> pair_;                  // by number, as the next two
    std::vector<int64_t> count_;
    std::vector<std::vector<uint32_t>> places_;    // where the pair appeared; it may be gone
    std::vector<uint32_t> fresh_;
};

// BPE training: merges the most frequent pair, again and again. first(a, b) orders equally frequent pairs; a pair for
// which wanted(pair, merged) is false is never merged.
template <class First, class Wanted>
std::vector<Merge> most_frequent_first(Merger& merger, int32_t alphabet, size_t limit, int64_t least, First first,
                                       Wanted wanted) {
    struct Candidate {
        int64_t count;
        TokenPair pair;
        uint32_t number;
    };
    auto later = [&](const Candidate& a, const Candidate& b) {
        return a.count != b.count ? a.count < b.count : first(b.pair, a.pair);
    };
    std::priority_queue<Candidate, std::vector<Candidate>, decltype(later)> queue(later);
    std::vector<Merge> merges;
    while (merges.size() < limit) {
        for (const uint32_t number : merger.fresh())
            if (merger.count(number) >= least) queue.push({merger.count(number), merger.pair(number), number});
        merger.fresh().clear();
        if (queue.empty()) break;
        const auto [count, pair, number] = queue.top();
        queue.pop();
        if (const int64_t now = merger.count(number); now != count) {  // its count fell: reinsert it
            if (now >= least) queue.push({now, pair, number});
            continue;
        }
        const int32_t priority = static_cast<int32_t>(merges.size()), merged = alphabet + priority;
        if (!wanted(pair, merged)) continue;
        merger.merge(number, merged);
        merges.push_back({pair.left, pair.right, merged, priority});
    }
    return merges;
}

}  // namespace chainrule
