// The forward pass of a model over new tokens, with a cache of the old ones, as a list of steps that runs in one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "decode/blocks.hpp"
#include "decode/pages.hpp"
#include "runtime/memory.hpp"

namespace chainrule {

// New tokens of one sequence: `count` rows from `row` on, after the `past` positions that its cache holds.
// `source` is the text it attends to; `seen` of its positions are visible.
struct Piece {
    size_t sequence, count, past, source = 0, seen = 0, row = 0;
};

struct Batch {
    std::vector<Piece> pieces;
    std::vector<int32_t> token;  // of each row, unless it is one of a source
    std::vector<size_t> piece;   // of each row: an index of pieces
    std::vector<size_t> kept;    // rows that Program::last keeps

    void add(Piece next, size_t keep = 1) {
        next.row = rows();
        piece.insert(piece.end(), next.count, pieces.size());
        pieces.push_back(next);
        for (size_t r = rows() - std::min(keep, next.count); r < rows(); ++r) kept.push_back(r);
    }

    size_t rows(bool last = false) const { return last ? kept.size() : piece.size(); }  // last: those that are kept
    size_t position(size_t row) const { return pieces[piece[row]].past + row - pieces[piece[row]].row; }
};

struct Weights {  // (outputs, inputs), in panels
    const int32_t* words;
    Format format;
    size_t outputs, inputs;

    size_t panels() const { return whole_panels(outputs) / PANEL; }
    size_t K() const { return whole_panels(inputs); }
    const int32_t* panel(size_t p) const { return words + p * panel_words(format, K()); }
};

// Activations of every row, padded with zeros to an odd number of whole panels: rows a multiple of 4 KB apart
// would compete for the same places in the cache.
class Buffer {
public:
    Buffer(size_t width, bool last) : width(width), stride(whole_panels(width) | PANEL), last(last) {}
    const size_t width, stride;
    const bool last;  // made after Program::last: only the rows that are kept
    void reserve(size_t rows);
    float* row(size_t r) const { return memory_->data() + r * stride; }

    size_t groups() const { return whole_panels(width) / GROUP; }
    void keep_rounded() { rounds_ = true; }  // before memory is reserved: the rows exist rounded too
    Rounded* rounded(size_t r) const { return reinterpret_cast<Rounded*>(rounded_->data()) + r * groups(); }

private:
    std::unique_ptr<Floats> memory_, rounded_;
    bool rounds_ = false;
    size_t rows_ = 0;
};

// Learned keys and values that stand before those of every sequence.
struct Prefix {
    const float *key_hpd = nullptr, *value_hpd = nullptr;
    size_t length = 0;
};

// Keys and values of all sequences, or of all sources, in one layer: its part of their pages. Positions are those of
// tokens; the cache of a head begins with the prefix.
class KVCache {
public:
    KVCache(Pages& pages, size_t heads, size_t D, Prefix prefix = {})
        : D(D), prefix(prefix), pages_(pages), before_(pages.add_layer(heads, D)) {}
    const size_t D;
    const Prefix prefix;

    Cache at(size_t sequence, size_t head) const {
        return {pages_.of(sequence), before_ + head * head_floats(pages_.format, D), pages_.format};
    }

private:
    const Pages& pages_;
    const size_t before_;
};

// The state of all sequences in one recurrent layer: h, and of an LSTM c, each padded with zeros to whole panels.
class RecurrentState {
public:
    RecurrentState(size_t parts, size_t H) : stride(whole_panels(H)), parts(parts) {}
    const size_t stride, parts;

    void grow(size_t sequences);
    float* at(size_t sequence) const { return memory_->data() + sequence * stride * parts; }

private:
    size_t sequences_ = 0;
    std::unique_ptr<Floats> memory_;
};

// Gains of the RMS norms of each head of queries and keys; null for none.
struct HeadNorms {
    const float *gamma_q = nullptr, *gamma_k = nullptr;
    float eps = 0;
};

struct Attention {
    size_t heads, kv_heads;
    const float *cos, *sin;  // of each position and pair of a head, by which queries and keys turn; null for none
    HeadNorms norms;
    Scores scores;
    Prefix prefix;
};

enum class Cell { rnn, lstm, gru, gru_after };  // gru_after: PyTorch's, which resets after the matmul

// What a program does next, in blocks that do not depend on each other.
struct Step {
    std::function<size_t(const Batch& batch)> blocks;  // how many
    std::function<void(const Batch& batch, size_t block, float* scratch)> run;
};

class Program {
public:
    // cache_bytes: of the pages of the KV cache at most; 0 for no limit. Keys and values of a source are always fp32.
    Program(size_t sequences, size_t positions, size_t cache_bytes, CacheFormat cache)
        : positions(positions), pages_(sequences, cache_bytes, cache) {}
    const size_t positions;  // of a sequence at most; pages are taken as needed
    size_t sequences() const { return pages_.sequences(); }
    const Pages& pages() const { return pages_; }

    size_t buffer(size_t width);
    size_t width(size_t buffer) const { return buffers_.at(buffer)->width; }

    // scale · table[token] + position; tokens from the end of the table on are rows of `prompt`.
    void embedding(size_t out, Weights table, float scale, const float* position_tc, const float* prompt_pc);
    void layernorm(size_t out, size_t in, const float* gamma, const float* beta, float eps);
    void rmsnorm(size_t out, size_t in, const float* gamma, float eps);
    // The outputs of `out` from `offset` on, which is a whole number of panels.
    void linear(size_t out, size_t offset, size_t in, Weights weights, const float* bias, Activation activation, bool add);
    void attention(size_t out, size_t qkv, const Attention& attention);
    // Attention to the source of each sequence, whose keys and values, side by side, are a matmul with `weights`.
    void cross_attention(size_t out, size_t q, size_t heads, float scale, Weights weights, const float* bias);
    void swiglu(size_t out, size_t in);
    void gated(size_t out, size_t in, Activation activation);  // f(gate) up, which stand side by side
    void add(size_t out, size_t a, size_t b);
    void scale(size_t out, size_t in, float factor);
    void activation(size_t out, size_t in, Activation activation);
    // gates: x W_xᵀ + b. The rows of `weights` are W_h; of a gru those of r and z, and `candidate` has those of n.
    void recurrent(size_t out, size_t gates, Cell cell, Weights weights, const Weights* candidate, const float* bias);
    void last(size_t out, size_t in);  // the last rows of each piece; later steps see only these rows

    // A piece for each source; memory_rc has a row for each of their positions. What was read before is forgotten.
    void read(const Batch& sources, const float* memory_rc);
    size_t memory_width() const { return memory_ ? memory_->width : 0; }  // 0 if the program looks at no source

    void run(const Batch& batch);  // throws OutOfPages before anything is computed
    void grow(size_t sequences);   // space for more sequences
    void copy(size_t from, size_t to, size_t count);     // the first `count` positions of a sequence, for another one too
    void truncate(size_t sequence, size_t count);        // forget what comes after the first `count` positions
    const float* result(size_t row) const { return buffers_.back()->row(row); }  // of the buffer made last
    size_t result_width() const { return buffers_.empty() ? 0 : buffers_.back()->width; }

private:
    Buffer& at(size_t buffer) const { return *buffers_.at(buffer); }

    using Steps = std::vector<Step>;
    void multiply(Steps& steps, bool last, Buffer& out, size_t offset, Buffer& in, Weights weights, const float* bias,
                  Activation activation, bool add);
    void walk(const Steps& steps, const Batch& batch) const;
    size_t cached(size_t count) const { return count ? longest_prefix_ + count : 0; }  // positions of a cache

    Pages pages_, source_pages_{0};
    size_t longest_prefix_ = 0, shortest_prefix_ = SIZE_MAX;
    std::vector<std::unique_ptr<Buffer>> buffers_;
    Steps steps_;
    std::vector<std::unique_ptr<KVCache>> caches_;
    std::vector<std::unique_ptr<RecurrentState>> states_;
    std::unique_ptr<Buffer> memory_, keys_values_;  // rows of the sources, and their keys and values in one layer
    Steps reading_;
    std::vector<std::unique_ptr<KVCache>> source_caches_;
    size_t scratch_ = 0;  // floats that a step needs at most
    bool last_ = false;
};

}  // namespace chainrule
