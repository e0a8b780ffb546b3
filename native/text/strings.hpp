// UTF-8, and sets of byte strings for the tokenizers: numbered, and as a trie.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace chainrule {

// Bytes of the UTF-8 character that begins with `lead`.
inline size_t utf8_size(uint8_t lead) {
    return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

inline bool utf8_continues(char byte) {
    return (static_cast<uint8_t>(byte) & 0xC0) == 0x80;
}

// The code point of the UTF-8 character of `size` bytes at p.
inline uint32_t utf8_code(const uint8_t* p, size_t size) {
    uint32_t code = size == 1 ? *p : *p & (0x7Fu >> size);
    for (size_t i = 1; i < size; ++i) code = code << 6 | (p[i] & 0x3F);
    return code;
}
std::string utf8_character(uint32_t code);  // surrogates are encoded like any other
constexpr uint32_t CODES = 0x140000;  // more than four bytes can encode

// True if the text consists of lead bytes, each followed by its number of continuation bytes.
bool whole_characters(std::string_view text);

inline uint64_t hash_bytes(std::string_view key) {
    constexpr uint64_t ODD = 0x9E3779B97F4A7C15;
    uint64_t hash = key.size() * ODD;
    size_t place = 0;
    for (; place + 8 <= key.size(); place += 8) {
        uint64_t word;
        std::memcpy(&word, key.data() + place, 8);
        hash = (hash ^ word) * ODD;
        hash ^= hash >> 32;
    }
    uint64_t rest = 0;
    if (place < key.size()) std::memcpy(&rest, key.data() + place, key.size() - place);
    hash = (hash ^ rest) * ODD;
    return hash ^ (hash >> 29);
}

// Numbers byte strings 0, 1, 2, ... in the order of their first occurrence.
class Numbering {
public:
    Numbering() { clear(); }
    uint32_t add(std::string_view key);  // its number; equal to the old size() if it is new
    uint32_t find(std::string_view key) const;  // its number, or ~0
    size_t size() const { return entries_.size(); }
    std::string_view key(uint32_t number) const {
        return {bytes_.data() + entries_[number].begin, entries_[number].size};
    }
    void clear();

private:
    struct Entry {
        uint64_t hash;
        size_t begin;
        uint32_t size;
    };
    size_t slot_of(std::string_view key, uint64_t hash) const;  // its own, or the empty one where it would be
    void grow();

    std::vector<uint32_t> slots_;  // number + 1, or 0
    std::vector<Entry> entries_;
    std::string bytes_;
};

// A trie. The children of a node are adjacent, sorted by byte.
class Trie {
public:
    static constexpr uint32_t NONE = ~0u;
    // keys must be sorted and distinct, and none empty; key i is found as value i.
    explicit Trie(const std::vector<std::string_view>& keys);

    // The child of `node` by `byte`, or NONE. The root is node 0.
    uint32_t step(uint32_t node, uint8_t byte) const {
        uint32_t low = first_[node], high = first_[node + 1];
        while (high - low > 8) {
            const uint32_t middle = (low + high) / 2;
            (label_[middle] <= byte ? low : high) = middle;
        }
        for (; low < high; ++low)
            if (label_[low] == byte) return low;
        return NONE;
    }
    uint32_t value(uint32_t node) const { return value_[node]; }  // NONE if no key ends here

private:
    std::vector<uint32_t> first_, value_;
    std::vector<uint8_t> label_;
};

}  // namespace chainrule
