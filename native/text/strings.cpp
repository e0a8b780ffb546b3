#include "text/strings.hpp"

namespace chainrule {

std::string utf8_character(uint32_t code) {
    if (code < 0x80) return {static_cast<char>(code)};
    const int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    std::string bytes(1, static_cast<char>((0xF00u >> (tail + 1) & 0xFF) | code >> 6 * tail));
    for (int i = tail - 1; i >= 0; --i) bytes += static_cast<char>(0x80 | (code >> 6 * i & 0x3F));
    return bytes;
}

bool whole_characters(std::string_view text) {
    for (size_t i = 0; i < text.size();) {
        const auto lead = static_cast<uint8_t>(text[i]);
        const size_t end = i + utf8_size(lead);
        if (utf8_continues(text[i]) || lead > 0xF4 || end > text.size()) return false;
        for (++i; i < end; ++i)
            if (!utf8_continues(text[i])) return false;
    }
    return true;
}

size_t Numbering::slot_of(std::string_view key, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = hash & mask;
    for (; slots_[slot]; slot = (slot + 1) & mask) {
        const uint32_t number = slots_[slot] - 1;
        if (entries_[number].hash == hash && this->key(number) == key) break;
    }
    return slot;
}

uint32_t Numbering::add(std::string_view key) {
    const uint64_t hash = hash_bytes(key);
    uint32_t& slot = slots_[slot_of(key, hash)];
    if (slot) return slot - 1;
    entries_.push_back({hash, bytes_.size(), static_cast<uint32_t>(key.size())});
    bytes_.append(key);
    slot = static_cast<uint32_t>(entries_.size());
    if (2 * entries_.size() > slots_.size()) grow();
    return static_cast<uint32_t>(entries_.size() - 1);
}

uint32_t Numbering::find(std::string_view key) const { return slots_[slot_of(key, hash_bytes(key))] - 1; }

void Numbering::clear() {
    slots_.assign(1 << 10, 0);
    entries_.clear();
    bytes_.clear();
}

void Numbering::grow() {
    slots_.assign(2 * slots_.size(), 0);
    const size_t mask = slots_.size() - 1;
    for (uint32_t number = 0; number < entries_.size(); ++number) {
        size_t place = entries_[number].hash & mask;
        while (slots_[place]) place = (place + 1) & mask;
        slots_[place] = number + 1;
    }
}

Trie::Trie(const std::vector<std::string_view>& keys) {
    struct Node {
        uint32_t low, high, depth;  // keys low .. high-1 share their first `depth` bytes
    };
    std::vector<Node> nodes{{0, static_cast<uint32_t>(keys.size()), 0}};
    label_.push_back(0);
    for (size_t i = 0; i < nodes.size(); ++i) {  // breadth first: children are appended in the order of their parents
        Node node = nodes[i];
        first_.push_back(static_cast<uint32_t>(nodes.size()));
        const bool ends = node.low < node.high && keys[node.low].size() == node.depth;
        value_.push_back(ends ? node.low++ : NONE);
        while (node.low < node.high) {
            const char byte = keys[node.low][node.depth];
            uint32_t next = node.low;
            while (next < node.high && keys[next][node.depth] == byte) ++next;
            nodes.push_back({node.low, next, node.depth + 1});
            label_.push_back(static_cast<uint8_t>(byte));
            node.low = next;
        }
    }
    first_.push_back(static_cast<uint32_t>(nodes.size()));
}

}  // namespace chainrule
