// A cache of the token ids of short words, since most words of a text have occurred before: direct-mapped, the newest
// entry wins. One per thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "runtime/pool.hpp"
#include "text/pretokenize.hpp"
#include "runtime/free_list.hpp"

namespace chainrule {

class WordCache {
public:
    // Appends the ids of the word [begin, begin + size); tokenize(ids) finds them if they are not in the cache. Reads up
    // to 32 bytes from `begin` on, but not beyond `end`.
    template <class Tokenize>
    void append(std::vector<int32_t>& out, Bytes begin, size_t size, Bytes end, Tokenize&& tokenize) {
        if (size > Key::MOST) {
            tokenize(ids_);
            out.insert(out.end(), ids_.begin(), ids_.end());
            return;
        }
        const Key key(begin, size, end);
        Entry& entry = entries_[key.hash() >> (64 - BITS)];
        if (!(entry.key == key)) {
            tokenize(ids_);
            if (ids_.size() > Entry::MOST) {
                out.insert(out.end(), ids_.begin(), ids_.end());
                return;
            }
            entry.key = key;
            entry.count = static_cast<int32_t>(ids_.size());
            std::copy(ids_.begin(), ids_.end(), entry.ids);
        }
        for (int32_t i = 0; i < entry.count; ++i) out.push_back(entry.ids[i]);
    }

private:
    static constexpr int BITS = 16;  // 4 MB
    static constexpr bool LITTLE_ENDIAN_BYTES = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

    // A word of up to 31 bytes as four numbers: its bytes, zeros, its length.
    struct Key {
        static constexpr size_t MOST = 31;

        Key() = default;  // of an empty entry
        Key(Bytes word, size_t size, Bytes end) {  // reads up to `end` or 32 bytes, and masks the bytes after the word
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

    struct alignas(64) Entry {
        static constexpr int MOST = 7;
        Key key;
        int32_t count = 0, ids[MOST];
    };

    std::vector<Entry> entries_{size_t{1} << BITS};
    std::vector<int32_t> ids_;  // of the current word
};

// The ids of a text, encoded in parallel: encode(part, cache, out) appends those of one part.
template <class Encode>
std::vector<int32_t> encode_parallel(std::string_view text, FreeList<WordCache>& caches, Encode&& encode) {
    const Bytes begin = reinterpret_cast<Bytes>(text.data());
    const std::vector<Span> parts = split_for_threads({begin, begin + text.size()});
    std::vector<std::vector<int32_t>> found(parts.size());
    auto run = [&](size_t i) {
        FreeList<WordCache>::Handle cache(caches);
        found[i].reserve(static_cast<size_t>(parts[i].second - parts[i].first) / 3);
        encode(parts[i], *cache, found[i]);
    };
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

}  // namespace chainrule
