// Words as rows of tokens, of which pairs are merged again and again: what training BPE and WordPiece share. An index
// of where each pair stands makes a merge cost what it changes, so that byte pair encoding is O(n log n) in the size of
// the distinct words. Pieces in src/chainrule/text/merges.py is the same.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "text/word_counts.hpp"

namespace chainrule {

struct Merge {
    int32_t left, right, merged;
    int32_t priority;  // the lowest goes first, the leftmost among equals
};

struct TokenPair {
    int32_t left, right;
    bool operator==(const TokenPair& other) const { return left == other.left && right == other.right; }
    bool operator<(const TokenPair& other) const {
        return left != other.left ? left < other.left : right < other.right;
    }
};

// How a word becomes the tokens that merging starts from.
class Spelling {
public:
    virtual ~Spelling() = default;
    virtual void spell(std::string_view word, std::vector<int32_t>& ids) const = 0;
};

// Pairs of tokens to numbers 0, 1, 2 ... in the order in which they are first asked for.
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

// A merge makes a token that was not there before: where tokens begin and end with them, the same characters are always
// cut alike, so no other pair makes the same token. Hence a pair comes up only while the newer of its tokens is made,
// and from then on it can but vanish: its count never grows later, and its places are in order.
class Merger {
public:
    Merger(const WordCounts& words, const Spelling& spelling);

    // Puts the new token `merged` wherever the pair stands, from left to right; how often that was, by words.
    int64_t merge(uint32_t number, int32_t merged);

    size_t pairs() const { return pair_.size(); }
    TokenPair pair(uint32_t number) const { return pair_[number]; }
    int64_t count(uint32_t number) const { return count_[number]; }
    std::vector<uint32_t>& fresh() { return fresh_; }  // pairs that came up since the caller last cleared it

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

    std::vector<int32_t> token_;                   // -1: merged into the one before it
    std::vector<uint32_t> before_, after_, word_;  // of each place
    std::vector<int64_t> times_;                   // of each word
    PairNumbers numbers_;
    std::vector<TokenPair> pair_;                  // of each number, as the two that follow
    std::vector<int64_t> count_;
    std::vector<std::vector<uint32_t>> places_;    // where the pair came up; it may be gone from there
    std::vector<uint32_t> fresh_;
};

// The merges of byte pair encoding: always the most frequent pair. first(a, b) says which of two equally frequent pairs
// goes first; wanted(pair, merged) is asked before each merge, and may leave the pair alone for good.
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
        if (const int64_t now = merger.count(number); now != count) {  // it shrank since: back to its place
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
