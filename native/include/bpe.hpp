// Byte-level byte-pair encoding: src/chainrule/text/bpe.py says what it is, bpe_reference.py states both algorithms.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pretokenize.hpp"

namespace chainrule {

struct Merge {
    int32_t left, right, merged;
    int32_t priority;  // the lowest goes first, the leftmost among equals
};

// The bytes of every token, one after the other.
struct Vocabulary {
    std::string bytes;
    std::vector<int64_t> ends;  // of each token; a token without bytes belongs to no text

    size_t size() const { return ends.size(); }
    std::string_view operator[](size_t id) const {
        const size_t begin = id ? static_cast<size_t>(ends[id - 1]) : 0;
        return std::string_view(bytes).substr(begin, static_cast<size_t>(ends[id]) - begin);
    }
};

// tiktoken's reading of a vocabulary: any two tokens whose bytes together are a token merge, with its id as priority.
std::vector<Merge> merges_of_ranks(const Vocabulary& vocabulary);

// Pairs of ids to merges: open addressing, since it is asked several times for each byte of a new word.
class MergeTable {
public:
    explicit MergeTable(const std::vector<Merge>& merges);
    const Merge* find(int32_t left, int32_t right) const {
        for (size_t i = start(left, right);; i = (i + 1) & mask_) {
            const Merge& slot = slots_[i];
            if (slot.left == left && slot.right == right) return &slot;
            if (slot.left < 0) return nullptr;
        }
    }

private:
    size_t start(int32_t left, int32_t right) const {
        const uint64_t key = static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
        return key * 0x9E3779B97F4A7C15u >> shift_;
    }
    std::vector<Merge> slots_;
    size_t mask_;
    int shift_;
};

class BpeEncoder {
public:
    // Tokens in `special` come out of decode but never out of a text.
    // whole_words: a word that is a token as a whole is that token, whatever the merges would make of it.
    BpeEncoder(std::shared_ptr<const Classes> classes, Pattern pattern, Vocabulary vocabulary,
               const std::vector<Merge>& merges, const std::vector<int32_t>& special, bool whole_words);
    ~BpeEncoder();

    std::vector<int32_t> encode(std::string_view text) const;  // every byte of it must be a token
    std::string decode(const int32_t* ids, size_t count) const;
    size_t size() const { return vocabulary_.size(); }

private:
    struct Workspace;
    struct Lease;
    void encode_piece(Span piece, Workspace& space, std::vector<int32_t>& out) const;
    void encode_word(Span word, Workspace& space) const;
    void merge_short(std::vector<int32_t>& ids) const;
    void merge_long(std::vector<int32_t>& ids) const;

    std::shared_ptr<const Classes> classes_;
    Pattern pattern_;
    Vocabulary vocabulary_;
    MergeTable merges_;
    std::unordered_map<std::string_view, int32_t> words_;  // tokens by their bytes, if whole words go first
    int32_t byte_ids_[256];
    mutable std::mutex mutex_;
    mutable std::vector<std::unique_ptr<Workspace>> spaces_;  // one per thread at work, kept for their caches
};

class BpeTrainer {
public:
    BpeTrainer(std::shared_ptr<const Classes> classes, Pattern pattern);
    ~BpeTrainer();
    BpeTrainer(const BpeTrainer&) = delete;

    void add(const std::vector<Span>& texts);  // counts their words
    // Up to `limit` new tokens out of pairs that occur `least` times or more. Tokens 0 to 255 are `bytes_in_order`.
    std::vector<Merge> train(const uint8_t* bytes_in_order, size_t limit, int64_t least) const;

private:
    struct Counter;
    std::shared_ptr<const Classes> classes_;
    Pattern pattern_;
    std::vector<std::unique_ptr<Counter>> counters_;  // one per thread at work; sums do not care who counted
};

}  // namespace chainrule
