#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>
#include <stdexcept>

#include "text/bpe.hpp"

namespace chainrule {
namespace {

constexpr int32_t NEVER = INT32_MAX;  // priority of a pair that does not merge
constexpr size_t SHORT = 128;         // ids: up to here scanning all pairs is faster than a priority queue

}  // namespace

MergeTable::MergeTable(const std::vector<Merge>& merges) {
    int bits = 4;
    while ((size_t{1} << bits) < 2 * merges.size()) ++bits;
    slots_.assign(size_t{1} << bits, Merge{-1, -1, -1, NEVER});
    mask_ = slots_.size() - 1;
    shift_ = 64 - bits;
    for (const Merge& merge : merges) {
        size_t i = start(merge.left, merge.right);
        while (slots_[i].left >= 0 && !(slots_[i].left == merge.left && slots_[i].right == merge.right))
            i = (i + 1) & mask_;
        slots_[i] = merge;  // of equal pairs the last one counts
    }
}

std::vector<Merge> merges_of_ranks(const Vocabulary& vocabulary) {
    std::unordered_map<std::string_view, int32_t> ids;
    std::vector<size_t> lengths;  // the only cuts tried: a token of a megabyte has a million places to cut
    for (size_t id = 0; id < vocabulary.size(); ++id) {
        if (vocabulary[id].empty()) continue;
        ids.emplace(vocabulary[id], static_cast<int32_t>(id));
        lengths.push_back(vocabulary[id].size());
    }
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    std::vector<Merge> merges;
    for (size_t id = 0; id < vocabulary.size(); ++id) {
        const std::string_view token = vocabulary[id];
        const int32_t merged = static_cast<int32_t>(id);
        for (const size_t cut : lengths) {
            if (cut >= token.size()) break;
            const auto left = ids.find(token.substr(0, cut));
            if (left == ids.end()) continue;
            const auto right = ids.find(token.substr(cut));
            if (right != ids.end()) merges.push_back({left->second, right->second, merged, merged});
        }
    }
    return merges;
}

Spelling byte_spelling(const std::array<int32_t, 256>& id_of_byte) {
    return [id_of_byte](std::string_view word, std::vector<int32_t>& ids) {
        ids.resize(word.size());
        for (size_t i = 0; i < word.size(); ++i) {
            ids[i] = id_of_byte[static_cast<uint8_t>(word[i])];
            if (ids[i] < 0) throw std::invalid_argument("a byte that is not a token");
        }
    };
}

BpeEncoder::BpeEncoder(std::shared_ptr<const Classes> classes, Pattern pattern, Vocabulary vocabulary,
                       const std::vector<Merge>& merges, Spelling spelling, Order order)
    : classes_(std::move(classes)),
      pattern_(pattern),
      vocabulary_(std::move(vocabulary)),
      merges_(merges),
      spelling_(std::move(spelling)),
      order_(order) {}

void BpeEncoder::take_whole(size_t id) {
    if (!vocabulary_[id].empty()) whole_.emplace(vocabulary_[id], static_cast<int32_t>(id));
}

std::vector<int32_t> BpeEncoder::encode(std::string_view text) const {
    return encode_parallel(text, caches_, [this](Span piece, WordCache& cache, std::vector<int32_t>& out) {
        for_words(*classes_, pattern_, piece, [&](Bytes begin, Bytes end) {
            cache.append(out, begin, static_cast<size_t>(end - begin), piece.second,
                         [&](std::vector<int32_t>& ids) { encode_word(as_text(begin, end), ids); });
        });
    });
}

void BpeEncoder::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
    if (!whole_.empty()) {
        const auto whole = whole_.find(word);
        if (whole != whole_.end()) {
            ids.assign(1, whole->second);
            return;
        }
    }
    spelling_(word, ids);
    if (ids.size() <= SHORT)
        merge_short(ids);
    else
        merge_long(ids);
}

// Merges the pair of lowest priority until there is none, as the reference does. At most SHORT ids.
void BpeEncoder::merge_short(std::vector<int32_t>& ids) const {
    int32_t priority[SHORT], merged[SHORT];  // of the pair that begins there
    size_t n = ids.size();
    int32_t current = -1;  // the priority of the last merge
    auto look = [&](size_t i) {
        const Merge* merge = i + 1 < n ? merges_.find(ids[i], ids[i + 1]) : nullptr;
        priority[i] = merge ? merge->priority : NEVER;
        merged[i] = merge ? merge->merged : -1;
    };
    for (size_t i = 0; i < n; ++i) look(i);
    while (n > 1) {
        size_t best = n;
        if (order_ == Order::ALL_PAIRS)  // the same pair further to the right; those to the left are merged
            best = static_cast<size_t>(std::find(priority, priority + n, current) - priority);
        if (best == n) best = static_cast<size_t>(std::min_element(priority, priority + n) - priority);
        current = priority[best];
        if (current == NEVER) break;
        ids[best] = merged[best];
        const size_t rest = n - best - 2;
        std::memmove(&ids[best + 1], &ids[best + 1] + 1, rest * sizeof(int32_t));
        std::memmove(&priority[best + 1], &priority[best + 1] + 1, rest * sizeof(int32_t));
        std::memmove(&merged[best + 1], &merged[best + 1] + 1, rest * sizeof(int32_t));
        --n;
        look(best);
        if (best > 0) look(best - 1);
    }
    ids.resize(n);
}

// The same in O(n log n): lists of pairs by priority; the list of the lowest is merged from left to right. New pairs with
// a priority as low or lower go into a queue that is served first. With merges from training it stays empty, but files
// may contain anything. With ALL_PAIRS new pairs join the lists.
void BpeEncoder::merge_long(std::vector<int32_t>& ids) const {
    const size_t n = ids.size();
    if (n >= UINT32_MAX) throw std::length_error("a word of four gigabytes");
    constexpr uint32_t NONE = UINT32_MAX;
    std::vector<uint32_t> before(n), after(n);
    std::vector<int32_t> priority(n, NEVER);
    std::unordered_map<int32_t, std::vector<uint32_t>> waiting;
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> priorities;
    using Urgent = std::pair<int32_t, uint32_t>;
    std::priority_queue<Urgent, std::vector<Urgent>, std::greater<>> urgent;
    int32_t current = -1;

    auto look = [&](uint32_t i) {
        const Merge* merge = after[i] != NONE ? merges_.find(ids[i], ids[after[i]]) : nullptr;
        priority[i] = merge ? merge->priority : NEVER;
        if (!merge) return;
        if (priority[i] <= current && order_ == Order::ONE_PAIR) {
            urgent.emplace(priority[i], i);
            return;
        }
        std::vector<uint32_t>& list = waiting[priority[i]];
        if (list.empty()) priorities.push(priority[i]);
        list.push_back(i);
    };
    auto merge_at = [&](uint32_t i, int32_t expected) {
        if (priority[i] != expected) return;  // it is gone
        const uint32_t gone = after[i];
        ids[i] = merges_.find(ids[i], ids[gone])->merged;
        ids[gone] = -1;
        priority[gone] = NEVER;
        after[i] = after[gone];
        if (after[i] != NONE) before[after[i]] = i;
        look(i);
        if (before[i] != NONE) look(before[i]);
    };

    for (uint32_t i = 0; i < n; ++i) {
        before[i] = i > 0 ? i - 1 : NONE;
        after[i] = i + 1 < n ? i + 1 : NONE;
    }
    for (uint32_t i = 0; i < n; ++i) look(i);
    while (!priorities.empty()) {
        current = priorities.top();
        priorities.pop();
        std::vector<uint32_t> list = std::move(waiting[current]);
        waiting.erase(current);
        std::sort(list.begin(), list.end());
        for (size_t next = 0; next < list.size() || !urgent.empty();) {
            if (!urgent.empty() && (next == list.size() || urgent.top() < Urgent{current, list[next]})) {
                const auto [expected, i] = urgent.top();
                urgent.pop();
                merge_at(i, expected);
            } else {
                merge_at(list[next++], current);
            }
        }
    }
    ids.erase(std::remove(ids.begin(), ids.end(), -1), ids.end());
}

std::string BpeEncoder::decode(const int32_t* ids, size_t count) const {
    size_t size = 0;
    for (size_t i = 0; i < count; ++i) size += vocabulary_[static_cast<size_t>(ids[i])].size();
    std::string text;
    text.reserve(size);
    for (size_t i = 0; i < count; ++i) text += vocabulary_[static_cast<size_t>(ids[i])];
    return text;
}

}  // namespace chainrule
