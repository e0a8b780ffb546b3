// Training counts each distinct word once, then merges the most frequent pair again and again. An index of where each
// pair stands makes a merge cost what it changes, so the whole is O(n log n) in the size of the distinct words.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <queue>
#include <stdexcept>

#include "bpe.hpp"
#include "pool.hpp"

namespace chainrule {
namespace {

uint64_t hash_bytes(Bytes p, size_t size) {
    uint64_t h = size * 0x9E3779B97F4A7C15u;
    auto mix = [&h](uint64_t part) { h = ((h ^ part) * 0xFF51AFD7ED558CCDu) ^ (h >> 29); };
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t part;
        std::memcpy(&part, p, 8);
        mix(part);
    }
    uint64_t part = 0;
    std::memcpy(&part, p, size);
    mix(part);
    return h ^ h >> 32;
}

constexpr uint32_t NONE = UINT32_MAX;

// Pairs of tokens to numbers 0, 1, 2 ... in the order in which they are first asked for.
class PairNumbers {
public:
    uint32_t of(uint64_t pair) {
        if (2 * count_ >= slots_.size()) grow();
        Slot& slot = slots_[place(pair)];
        if (slot.number == NONE) slot = {pair, count_++};
        return slot.number;
    }

private:
    struct Slot {
        uint64_t pair = 0;
        uint32_t number = NONE;
    };
    size_t place(uint64_t pair) const {
        size_t i = (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> shift_;
        while (slots_[i].number != NONE && slots_[i].pair != pair) i = (i + 1) & (slots_.size() - 1);
        return i;
    }
    void grow() {
        std::vector<Slot> old(2 * slots_.size());
        old.swap(slots_);
        --shift_;
        for (const Slot& slot : old)
            if (slot.number != NONE) slots_[place(slot.pair)] = slot;
    }
    std::vector<Slot> slots_{size_t{1} << 16};
    int shift_ = 64 - 16;
    uint32_t count_ = 0;
};

}  // namespace

// Distinct words and how often they came.
struct BpeTrainer::Counter {
    struct Word {
        uint64_t hash;
        size_t begin;
        size_t size;
        int64_t count;
    };
    void add(Bytes word, size_t size, int64_t count) {
        if (2 * words.size() >= table.size()) grow();
        const uint64_t hash = hash_bytes(word, size);
        size_t i = hash & (table.size() - 1);
        for (; table[i] != NONE; i = (i + 1) & (table.size() - 1)) {
            Word& known = words[table[i]];
            if (known.hash == hash && known.size == size && !std::memcmp(&bytes[known.begin], word, size)) {
                known.count += count;
                return;
            }
        }
        if (words.size() >= NONE - 1) throw std::length_error("four billion distinct words");
        table[i] = static_cast<uint32_t>(words.size());
        words.push_back({hash, bytes.size(), size, count});
        bytes.insert(bytes.end(), word, word + size);
    }
    void grow() {
        table.assign(2 * table.size(), NONE);
        for (size_t w = 0; w < words.size(); ++w) {
            size_t i = words[w].hash & (table.size() - 1);
            while (table[i] != NONE) i = (i + 1) & (table.size() - 1);
            table[i] = static_cast<uint32_t>(w);
        }
    }
    std::vector<uint32_t> table = std::vector<uint32_t>(1 << 12, NONE);
    std::vector<Word> words;
    std::vector<uint8_t> bytes;
};

BpeTrainer::BpeTrainer(std::shared_ptr<const Classes> classes, Pattern pattern)
    : classes_(std::move(classes)), pattern_(pattern) {}

BpeTrainer::~BpeTrainer() = default;

void BpeTrainer::add(const std::vector<Span>& texts) {
    std::vector<Span> parts;
    for (const Span& text : texts)
        for (const Span& part : pieces(text)) parts.push_back(part);
    std::vector<size_t> blocks{0};  // short texts together, so that a block is worth a thread
    for (size_t i = 0, bytes = 0; i < parts.size(); ++i) {
        bytes += static_cast<size_t>(parts[i].second - parts[i].first);
        if (bytes < (1 << 17) && i + 1 < parts.size()) continue;
        blocks.push_back(i + 1);
        bytes = 0;
    }
    std::mutex mutex;
    parallel_for(blocks.size() - 1, [&](size_t block) {
        std::unique_ptr<Counter> counter;
        {
            std::lock_guard<std::mutex> lock(mutex);
            if (!counters_.empty()) {
                counter = std::move(counters_.back());
                counters_.pop_back();
            }
        }
        if (!counter) counter = std::make_unique<Counter>();
        for (size_t i = blocks[block]; i < blocks[block + 1]; ++i)
            for_words(*classes_, pattern_, parts[i], [&](Bytes begin, Bytes end) {
                counter->add(begin, static_cast<size_t>(end - begin), 1);
            });
        std::lock_guard<std::mutex> lock(mutex);
        counters_.push_back(std::move(counter));
    });
}

namespace {

struct Candidate {
    int64_t count;
    uint64_t pair;
    bool operator<(const Candidate& other) const {  // the most frequent on top, then the smaller pair of ids
        return count != other.count ? count < other.count : pair > other.pair;
    }
};

// All words as one row of tokens with links between neighbours, and where each pair stands.
class Merger {
public:
    void reserve(size_t bytes) {
        if (bytes >= NONE) throw std::length_error("distinct words of four gigabytes");
        for (auto* column : {&before_, &after_, &word_}) column->reserve(bytes);
        token_.reserve(bytes);
    }

    void add_word(const int32_t* tokens, size_t size, int64_t count) {
        const uint32_t first = static_cast<uint32_t>(token_.size()), word = static_cast<uint32_t>(times_.size());
        times_.push_back(count);
        for (uint32_t i = 0; i < size; ++i) {
            token_.push_back(tokens[i]);
            before_.push_back(i > 0 ? first + i - 1 : NONE);
            after_.push_back(i + 1 < size ? first + i + 1 : NONE);
            word_.push_back(word);
        }
        for (uint32_t i = 0; i + 1 < size; ++i) appear(first + i);
    }

    // A pair comes up only while the newer of its tokens is made; from then on it can but vanish. So its count in the
    // queue is never too low, and its places are in order.

    // The best pair that occurs `least` times or more; false if there is none.
    bool best(int64_t least, uint64_t* pair) {
        for (uint32_t number : fresh_)
            if (count_[number] >= least) queue_.push({count_[number], pair_[number]});
        fresh_.clear();
        while (!queue_.empty()) {
            const Candidate top = queue_.top();
            queue_.pop();
            const int64_t count = count_[numbers_.of(top.pair)];
            if (count == top.count) {
                *pair = top.pair;
                return true;
            }
            if (count >= least) queue_.push({count, top.pair});  // it shrank since: back to its place
        }
        return false;
    }

    void merge(uint64_t pair, int32_t merged) {
        const uint32_t number = numbers_.of(pair);
        std::vector<uint32_t> places = std::move(places_[number]);
        for (const uint32_t i : places) {
            if (token_[i] < 0 || after_[i] == NONE || pair_at(i) != pair) continue;  // gone since
            const uint32_t gone = after_[i];
            if (before_[i] != NONE) vanish(before_[i]);
            if (after_[gone] != NONE) vanish(gone);
            token_[i] = merged;
            token_[gone] = -1;
            after_[i] = after_[gone];
            if (after_[i] != NONE) {
                before_[after_[i]] = i;
                appear(i);
            }
            if (before_[i] != NONE) appear(before_[i]);
        }
        count_[number] = 0;
    }

private:
    uint64_t pair_at(uint32_t i) const {
        return static_cast<uint64_t>(token_[i]) << 32 | static_cast<uint32_t>(token_[after_[i]]);
    }
    void vanish(uint32_t i) { count_[numbers_.of(pair_at(i))] -= times_[word_[i]]; }
    void appear(uint32_t i) {
        const uint64_t pair = pair_at(i);
        const uint32_t number = numbers_.of(pair);
        if (number == pair_.size()) {
            pair_.push_back(pair);
            count_.push_back(0);
            places_.emplace_back();
            fresh_.push_back(number);
        }
        count_[number] += times_[word_[i]];
        places_[number].push_back(i);
    }

    std::vector<int32_t> token_;                    // -1: merged into the one before it
    std::vector<uint32_t> before_, after_, word_;   // of each place
    std::vector<int64_t> times_;                    // of each word
    PairNumbers numbers_;
    std::vector<uint64_t> pair_;                    // of each number, as the three that follow
    std::vector<int64_t> count_;
    std::vector<std::vector<uint32_t>> places_;     // where the pair came up; it may be gone from there
    std::vector<uint32_t> fresh_;                   // pairs that came up since the last search for the best
    std::priority_queue<Candidate> queue_;
};

}  // namespace

std::vector<Merge> BpeTrainer::train(const uint8_t* bytes_in_order, size_t limit, int64_t least) const {
    Counter all;
    for (const auto& counter : counters_)
        for (const Counter::Word& word : counter->words) all.add(&counter->bytes[word.begin], word.size, word.count);

    int32_t id_of[256];
    for (int32_t id = 0; id < 256; ++id) id_of[bytes_in_order[id]] = id;
    Merger merger;
    merger.reserve(all.bytes.size());
    std::vector<int32_t> ids;
    for (const Counter::Word& word : all.words) {
        ids.clear();
        for (size_t i = 0; i < word.size; ++i) ids.push_back(id_of[all.bytes[word.begin + i]]);
        merger.add_word(ids.data(), ids.size(), word.count);
    }

    std::vector<Merge> merges;
    uint64_t pair;
    while (merges.size() < limit && merger.best(least, &pair)) {
        const int32_t number = static_cast<int32_t>(merges.size()), merged = 256 + number;
        merger.merge(pair, merged);
        merges.push_back({static_cast<int32_t>(pair >> 32), static_cast<int32_t>(pair), merged, number});
    }
    return merges;
}

}  // namespace chainrule
