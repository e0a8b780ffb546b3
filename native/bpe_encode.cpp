#include <algorithm>
#include <cstring>
#include <functional>
#include <queue>
#include <stdexcept>

#include "bpe.hpp"
#include "pool.hpp"

namespace chainrule {
namespace {

constexpr int32_t NEVER = INT32_MAX;  // the priority of two tokens that do not merge

constexpr bool LITTLE_ENDIAN_BYTES = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

// A word of up to 31 bytes as four numbers: its bytes, zeros, its length.
struct Key {
    static constexpr size_t MOST = 31;

    Key() = default;  // of no word
    Key(Bytes word, size_t size, Bytes end) {  // reads up to `end`, or 32 bytes, and masks what is not the word
        uint8_t copy[32] = {};
        if (end - word < 32 || !LITTLE_ENDIAN_BYTES) word = static_cast<Bytes>(std::memcpy(copy, word, size));
        for (size_t i = 0; 8 * i < size; ++i) {
            std::memcpy(&parts[i], word + 8 * i, 8);
            const size_t left = size - 8 * i;
            if (left < 8 && LITTLE_ENDIAN_BYTES) parts[i] &= (uint64_t{1} << 8 * left) - 1;
        }
        parts[3] ^= static_cast<uint64_t>(size) << (LITTLE_ENDIAN_BYTES ? 56 : 0);  // the last byte
    }
    bool operator==(const Key& other) const {
        return ((parts[0] ^ other.parts[0]) | (parts[1] ^ other.parts[1]) | (parts[2] ^ other.parts[2]) |
                (parts[3] ^ other.parts[3])) == 0;
    }
    uint64_t hash() const {
        uint64_t h = parts[0] * 0x9E3779B97F4A7C15u + parts[1] * 0xC2B2AE3D27D4EB4Fu;
        h ^= (parts[2] * 0x165667B19E3779F9u + parts[3] * 0xD6E8FEB86659FD93u) >> 7;
        return (h ^ h >> 31) * 0xFF51AFD7ED558CCDu;
    }
    uint64_t parts[4] = {};
};

// Most words of a text have been seen before, and most are short: a table of one place per hash, the newest wins.
struct alignas(64) Remembered {
    static constexpr int MOST = 7;
    Key key;
    int32_t count = 0, ids[MOST];
};
constexpr int CACHE_BITS = 16;  // 4 MB
constexpr size_t SHORT = 128;   // up to here looking at all pairs again is faster than keeping order among them

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
        slots_[i] = merge;  // of two that are equal the last counts
    }
}

std::vector<Merge> merges_of_ranks(const Vocabulary& vocabulary) {
    std::unordered_map<std::string_view, int32_t> ids;
    std::vector<size_t> lengths;  // only these are tried: a token of a megabyte has a million places to cut
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

struct BpeEncoder::Workspace {
    std::vector<Remembered> cache{size_t{1} << CACHE_BITS};
    std::vector<int32_t> ids;  // of the word at hand
};

struct BpeEncoder::Lease {
    explicit Lease(const BpeEncoder& encoder) : owner(encoder) {
        std::lock_guard<std::mutex> lock(owner.mutex_);
        if (!owner.spaces_.empty()) {
            space = std::move(owner.spaces_.back());
            owner.spaces_.pop_back();
        }
        if (!space) space = std::make_unique<Workspace>();
    }
    ~Lease() {
        std::lock_guard<std::mutex> lock(owner.mutex_);
        owner.spaces_.push_back(std::move(space));
    }
    const BpeEncoder& owner;
    std::unique_ptr<Workspace> space;
};

BpeEncoder::BpeEncoder(std::shared_ptr<const Classes> classes, Pattern pattern, Vocabulary vocabulary,
                       const std::vector<Merge>& merges, const std::vector<int32_t>& special, bool whole_words)
    : classes_(std::move(classes)), pattern_(pattern), vocabulary_(std::move(vocabulary)), merges_(merges) {
    std::fill_n(byte_ids_, 256, -1);
    std::vector<bool> ordinary(vocabulary_.size(), true);
    for (const int32_t id : special) ordinary.at(static_cast<size_t>(id)) = false;
    for (size_t id = 0; id < vocabulary_.size(); ++id) {
        if (!ordinary[id]) continue;
        const std::string_view token = vocabulary_[id];
        if (token.size() == 1) byte_ids_[static_cast<uint8_t>(token[0])] = static_cast<int32_t>(id);
        if (whole_words && !token.empty()) words_.emplace(token, static_cast<int32_t>(id));
    }
}

BpeEncoder::~BpeEncoder() = default;

std::vector<int32_t> BpeEncoder::encode(std::string_view text) const {
    const Bytes begin = reinterpret_cast<Bytes>(text.data());
    const std::vector<Span> parts = pieces({begin, begin + text.size()});
    std::vector<std::vector<int32_t>> found(parts.size());
    auto run = [&](size_t i) { encode_piece(parts[i], *Lease(*this).space, found[i]); };
    if (parts.size() == 1)
        run(0);
    else
        parallel_for(parts.size(), run);
    if (found.size() == 1) return std::move(found[0]);
    size_t total = 0;
    for (const auto& ids : found) total += ids.size();
    std::vector<int32_t> all;
    all.reserve(total);
    for (auto& ids : found) {
        all.insert(all.end(), ids.begin(), ids.end());
        std::vector<int32_t>().swap(ids);
    }
    return all;
}

void BpeEncoder::encode_piece(Span piece, Workspace& space, std::vector<int32_t>& out) const {
    out.reserve(static_cast<size_t>(piece.second - piece.first) / 3);
    for_words(*classes_, pattern_, piece, [&](Bytes begin, Bytes end) {
        const size_t size = static_cast<size_t>(end - begin);
        if (size > Key::MOST) {
            encode_word({begin, end}, space);
            out.insert(out.end(), space.ids.begin(), space.ids.end());
            return;
        }
        const Key key(begin, size, piece.second);
        Remembered& place = space.cache[key.hash() >> (64 - CACHE_BITS)];
        if (!(place.key == key)) {
            encode_word({begin, end}, space);
            if (space.ids.size() > Remembered::MOST) {
                out.insert(out.end(), space.ids.begin(), space.ids.end());
                return;
            }
            place.key = key;
            place.count = static_cast<int32_t>(space.ids.size());
            std::copy(space.ids.begin(), space.ids.end(), place.ids);
        }
        for (int32_t i = 0; i < place.count; ++i) out.push_back(place.ids[i]);
    });
}

void BpeEncoder::encode_word(Span word, Workspace& space) const {
    const size_t size = static_cast<size_t>(word.second - word.first);
    std::vector<int32_t>& ids = space.ids;
    if (!words_.empty()) {
        const auto whole = words_.find({reinterpret_cast<const char*>(word.first), size});
        if (whole != words_.end()) {
            ids.assign(1, whole->second);
            return;
        }
    }
    ids.resize(size);
    for (size_t i = 0; i < size; ++i)
        if ((ids[i] = byte_ids_[word.first[i]]) < 0) throw std::invalid_argument("a byte that is no token");
    if (size <= SHORT)
        merge_short(ids);
    else
        merge_long(ids);
}

// Merges the best pair until there is none, as the reference does. No more than SHORT ids.
void BpeEncoder::merge_short(std::vector<int32_t>& ids) const {
    int32_t priority[SHORT], merged[SHORT];  // of the pair that begins there
    size_t n = ids.size();
    auto look = [&](size_t i) {
        const Merge* merge = i + 1 < n ? merges_.find(ids[i], ids[i + 1]) : nullptr;
        priority[i] = merge ? merge->priority : NEVER;
        merged[i] = merge ? merge->merged : -1;
    };
    for (size_t i = 0; i < n; ++i) look(i);
    while (n > 1) {
        const size_t best = static_cast<size_t>(std::min_element(priority, priority + n) - priority);
        if (priority[best] == NEVER) break;
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

// The same in O(n log n). Pairs wait in lists by priority, and the list of the lowest is walked from left to right.
// Pairs that come up on the way with a priority as low or lower wait in a queue that goes first: with vocabularies made
// by training it stays empty, but files may hold anything.
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
        if (priority[i] <= current) {
            urgent.emplace(priority[i], i);
            return;
        }
        std::vector<uint32_t>& list = waiting[priority[i]];
        if (list.empty()) priorities.push(priority[i]);
        list.push_back(i);
    };
    auto merge_at = [&](uint32_t i, int32_t expected) {
        if (priority[i] != expected) return;  // merged otherwise since
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
