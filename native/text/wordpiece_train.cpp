// A merge changes the counts of its two pieces, hence the scores of all pairs with them: these pairs move in the heap.
// The heap holds only pairs that occur at least `bound` times, which keeps it small while the bound is halved.
#include <algorithm>
#include <tuple>

#include "text/wordpiece.hpp"

namespace chainrule {
namespace {

// body(piece) for each character of a word as a piece; those inside the word begin with the prefix.
template <class Body>
void for_pieces(std::string_view word, const std::string& prefix, Body&& body) {
    std::string piece;
    for (size_t i = 0; i < word.size();) {
        const size_t size = std::min(utf8_size(static_cast<uint8_t>(word[i])), word.size() - i);
        piece = i ? prefix : "";
        piece += word.substr(i, size);
        body(piece);
        i += size;
    }
}

// Pairs by score: a heap with updates.
class BestPairs {
public:
    BestPairs(Merger& merger, std::vector<std::string> texts, std::string_view prefix)
        : merger_(merger), texts_(std::move(texts)), prefix_(prefix), times_(texts_.size()) {
        merger_.for_tokens([&](int32_t token, int64_t times) { times_[token] += times; });
    }

    void start(int64_t least) {  // fill the heap with the pairs that occur at least so often
        least_ = least;
        heap_.clear();
        holding_.assign(texts_.size(), {});
        place_.assign(merger_.pairs(), ABSENT);
        key_.resize(merger_.pairs());
        merger_.fresh().clear();
        for (uint32_t number = 0; number < merger_.pairs(); ++number) enter(number);
    }

    bool empty() const { return heap_.empty(); }

    const std::string& merge_best() {
        const uint32_t number = heap_[0];
        const auto [left, right] = merger_.pair(number);
        const int32_t merged = static_cast<int32_t>(texts_.size());
        texts_.push_back(texts_[left] + texts_[right].substr(prefix_.size()));
        const int64_t times = merger_.merge(number, merged);
        times_[left] -= times;
        times_[right] -= times;
        times_.push_back(times);
        holding_.emplace_back();
        update(holding_[left]);
        if (right != left) update(holding_[right]);
        place_.resize(merger_.pairs(), ABSENT);
        key_.resize(merger_.pairs());
        for (const uint32_t fresh : merger_.fresh()) enter(fresh);
        merger_.fresh().clear();
        return texts_.back();
    }

private:
    static constexpr uint32_t ABSENT = UINT32_MAX;
    struct Key {
        double score;
        int64_t count;
    };

    // count(ab) / (count(a) count(b)), rounded as score() in wordpiece.py
    Key key_of(uint32_t number) const {
        const auto [left, right] = merger_.pair(number);
        const double expected = static_cast<double>(times_[left]) * static_cast<double>(times_[right]);
        return {static_cast<double>(merger_.count(number)) / expected, merger_.count(number)};
    }

    bool before(uint32_t a, uint32_t b) const {  // by score, then count, then in alphabetical order
        if (key_[a].score != key_[b].score) return key_[a].score > key_[b].score;
        if (key_[a].count != key_[b].count) return key_[a].count > key_[b].count;
        const TokenPair p = merger_.pair(a), q = merger_.pair(b);
        return std::tie(texts_[p.left], texts_[p.right]) < std::tie(texts_[q.left], texts_[q.right]);
    }

    void enter(uint32_t number) {
        if (merger_.count(number) < least_) return;
        const auto [left, right] = merger_.pair(number);
        holding_[left].push_back(number);
        if (right != left) holding_[right].push_back(number);
        key_[number] = key_of(number);
        heap_.push_back(number);
        rise(heap_.size() - 1);
    }

    void update(std::vector<uint32_t>& holding) {  // pairs that became too rare are dropped
        size_t kept = 0;
        for (const uint32_t number : holding) {
            const size_t place = place_[number];
            if (merger_.count(number) < least_) {
                if (place != ABSENT) remove(place);
                continue;
            }
            holding[kept++] = number;
            key_[number] = key_of(number);
            sink(rise(place));
        }
        holding.resize(kept);
    }

    void remove(size_t place) {
        place_[heap_[place]] = ABSENT;
        const uint32_t last = heap_.back();
        heap_.pop_back();
        if (place == heap_.size()) return;
        put(place, last);
        sink(rise(place));
    }

    void put(size_t place, uint32_t number) {
        heap_[place] = number;
        place_[number] = static_cast<uint32_t>(place);
    }

    size_t rise(size_t place) {
        const uint32_t number = heap_[place];
        for (; place > 0 && before(number, heap_[(place - 1) / 2]); place = (place - 1) / 2)
            put(place, heap_[(place - 1) / 2]);
        put(place, number);
        return place;
    }

    void sink(size_t place) {
        const uint32_t number = heap_[place];
        for (size_t child; (child = 2 * place + 1) < heap_.size(); place = child) {
            if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
            if (!before(heap_[child], number)) break;
            put(place, heap_[child]);
        }
        put(place, number);
    }

    Merger& merger_;
    std::vector<std::string> texts_;                // of the tokens
    std::string_view prefix_;
    std::vector<int64_t> times_;                    // how often each token occurs
    std::vector<std::vector<uint32_t>> holding_;    // pairs with each token
    int64_t least_ = 0;
    std::vector<Key> key_;                          // of each pair
    std::vector<uint32_t> place_, heap_;            // position of a pair in the heap; pair at a position
};

}  // namespace

WordPieceTrainer::WordPieceTrainer(std::shared_ptr<const BertTable> table, std::string prefix)
    : table_(std::move(table)), prefix_(std::move(prefix)) {}

void WordPieceTrainer::add(const std::vector<Span>& texts) {
    std::shared_lock<std::shared_mutex> lock(table_->mutex);
    counts_.add(texts, [this](Span part, auto each) {
        std::string buffer;
        table_->for_words(part, buffer, each);
    });
}

std::vector<std::string> WordPieceTrainer::alphabet() const {
    Numbering pieces;
    const WordCounts words = counts_.total();
    for (uint32_t i = 0; i < words.words.size(); ++i)
        for_pieces(words.words.key(i), prefix_, [&](const std::string& piece) { pieces.add(piece); });
    std::vector<std::string> sorted;
    for (uint32_t i = 0; i < pieces.size(); ++i) sorted.emplace_back(pieces.key(i));
    std::sort(sorted.begin(), sorted.end());
    return sorted;
}

std::vector<std::string> WordPieceTrainer::train(size_t limit, int64_t least) const {
    const std::vector<std::string> pieces = alphabet();
    Numbering numbers;  // of the pieces, in alphabetical order
    for (const std::string& piece : pieces) numbers.add(piece);
    Merger merger(counts_.total(), [&](std::string_view word, std::vector<int32_t>& ids) {
        ids.clear();
        for_pieces(word, prefix_, [&](const std::string& piece) {
            ids.push_back(static_cast<int32_t>(numbers.find(piece)));
        });
    });
    int64_t most = 1;
    for (uint32_t number = 0; number < merger.pairs(); ++number) most = std::max(most, merger.count(number));
    int64_t bound = least;
    if (!least)
        for (bound = 1; 2 * bound <= most;) bound *= 2;
    const int64_t lowest = least ? least : 2;

    BestPairs best(merger, pieces, prefix_);
    std::vector<std::string> tokens;
    for (; bound >= lowest; bound /= 2) {
        best.start(bound);
        while (tokens.size() < limit && !best.empty()) tokens.push_back(best.merge_best());
        if (least) break;
    }
    return tokens;
}

}  // namespace chainrule
