// Byte pair encoding, of bytes and of characters: src/chainrule/text/bpe.py and textbook_bpe.py define them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/merger.hpp"
#include "text/pretokenize.hpp"
#include "text/word_cache.hpp"

namespace chainrule {

// The bytes of all tokens, concatenated.
struct Vocabulary {
    std::string bytes;
    std::vector<int64_t> ends;  // of each token; a token without bytes never comes out of a text

    size_t size() const { return ends.size(); }
    std::string_view operator[](size_t id) const {
        const size_t begin = id ? static_cast<size_t>(ends[id - 1]) : 0;
        return std::string_view(bytes).substr(begin, static_cast<size_t>(ends[id]) - begin);
    }
};

// tiktoken's rule: two tokens merge if their bytes together are a token, with its id as priority.
std::vector<Merge> merges_of_ranks(const Vocabulary& vocabulary);

// Hash table from pairs of ids to merges: open addressing, since a new word needs several lookups per byte.
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

// A word as the tokens of its bytes; -1 stands for a byte that is not a token.
Spelling byte_spelling(const std::array<int32_t, 256>& id_of_byte);

// A word as the tokens of its characters. Unless it is white space, the token `end` follows, if it is not negative.
class CharacterSpelling {
public:
    CharacterSpelling(std::shared_ptr<const Classes> classes, int32_t end, int32_t unknown);
    void add(uint32_t code, int32_t id);  // every other character is `unknown`
    void operator()(std::string_view word, std::vector<int32_t>& ids) const;

private:
    std::shared_ptr<const Classes> classes_;
    int32_t end_, unknown_;
    int32_t ascii_[128];
    std::unordered_map<uint32_t, int32_t> others_;
};

// Which pair merges next. The two orders differ only if a merge enables one of a lower priority number, as the merges of
// a file may.
enum class Order {
    ONE_PAIR,  // merge one occurrence, then look for the lowest priority again
    ALL_PAIRS,  // merge all occurrences of a pair, then look again
};

class BpeEncoder {
public:
    BpeEncoder(std::shared_ptr<const Classes> classes, Pattern pattern, Vocabulary vocabulary,
               const std::vector<Merge>& merges, Spelling spelling, Order order);

    void take_whole(size_t id);  // a word equal to this token becomes it, whatever the merges say
    std::vector<int32_t> encode(std::string_view text) const;  // each byte must be a token
    std::string decode(const int32_t* ids, size_t count) const;
    size_t size() const { return vocabulary_.size(); }

private:
    void encode_word(std::string_view word, std::vector<int32_t>& ids) const;
    void merge_short(std::vector<int32_t>& ids) const;
    void merge_long(std::vector<int32_t>& ids) const;

    std::shared_ptr<const Classes> classes_;
    Pattern pattern_;
    Vocabulary vocabulary_;
    MergeTable merges_;
    Spelling spelling_;
    Order order_;
    std::unordered_map<std::string_view, int32_t> whole_;
    mutable FreeList<WordCache> caches_;
};

class BpeTrainer {
public:
    BpeTrainer(std::shared_ptr<const Classes> classes, Pattern pattern);
    void add(const std::vector<Span>& texts);  // counts their words
    void add(const WordCounts& counted) { counts_.add(counted); }
    WordCounts counts() const { return counts_.total(); }
    // Up to `limit` merges of pairs that occur at least `least` times. Tokens 0 to 255 are `bytes_in_order`.
    std::vector<Merge> train(const uint8_t* bytes_in_order, size_t limit, int64_t least) const;

private:
    std::shared_ptr<const Classes> classes_;
    Pattern pattern_;
    TextCounts counts_;
};

class TextbookBpeTrainer {
public:
    static constexpr int32_t END = -1;

    TextbookBpeTrainer(std::shared_ptr<const Classes> classes, std::string end_mark);  // empty for none
    void add(const std::vector<Span>& texts);

    // The characters in the order of their first occurrence, and END for the end mark. Their tokens are 0, 1, 2, ...
    const std::vector<int32_t>& characters() const { return characters_; }

    // Up to `limit` merges; a pair that would become one of `never` is skipped.
    std::vector<Merge> train(size_t limit, const std::vector<std::string>& never) const;

private:
    void collect(Span text);

    std::shared_ptr<const Classes> classes_;
    std::string end_mark_;
    bool marked_ = false;
    std::vector<bool> seen_ = std::vector<bool>(CODES);
    std::vector<int32_t> characters_;
    TextCounts counts_;
};

}  // namespace chainrule
