// The steps of a program: what each does with a block of rows, panels or heads.
#pragma once

#include <algorithm>

#include "ops/activations.hpp"
#include "ops/gelu.hpp"
#include "ops/layernorm.hpp"
#include "ops/recurrent.hpp"
#include "decode/program.hpp"
#include "ops/rmsnorm.hpp"
#include "ops/rotary.hpp"

namespace chainrule::steps {

constexpr size_t ROWS = 8;              // of a block of a step that works on each row alone
constexpr size_t MATMUL_ROWS = 252;      // of a block of a matmul: whole tiles for every ISA
constexpr size_t BLOCK_BYTES = 1 << 16;  // of weights, at least, in a block

inline size_t blocks_of(size_t n, size_t size) { return (n + size - 1) / size; }

class RowStep : public Step {
public:
    explicit RowStep(bool last) : last_(last) {}
    size_t blocks(const Batch& batch) const override { return blocks_of(rows(batch), ROWS); }
    void run(const Batch& batch, size_t block, float*) const override {
        const size_t first = block * ROWS;
        run_rows(batch, first, std::min(ROWS, rows(batch) - first));
    }

protected:
    size_t rows(const Batch& batch) const { return last_ ? batch.pieces.size() : batch.rows(); }
    virtual void run_rows(const Batch& batch, size_t first, size_t count) const = 0;

private:
    const bool last_;
};

class Embedding : public RowStep {
public:
    Embedding(Buffer& out, Weights table, float scale, const float* position_tc)
        : RowStep(false), out_(out), table_(table), scale_(scale), position_tc_(position_tc) {}

    void run_rows(const Batch& batch, size_t first, size_t count) const override {
        for (size_t r = first; r < first + count; ++r) {
            const size_t token = batch.token[r];
            float* out = out_.row(r);
            panels().column(out, table_.panel(token / PANEL), table_.format, token % PANEL, table_.K());
            if (scale_ != 1)
                for (size_t c = 0; c < out_.width; ++c) out[c] *= scale_;
            if (!position_tc_) continue;
            const float* position_c = position_tc_ + batch.position(r) * out_.width;
            for (size_t c = 0; c < out_.width; ++c) out[c] += position_c[c];
        }
    }

private:
    Buffer& out_;
    const Weights table_;
    const float scale_;
    const float* const position_tc_;
};

class Norm : public RowStep {  // RMS norm if there is no beta
public:
    Norm(bool last, Buffer& out, Buffer& in, const float* gamma, const float* beta, float eps)
        : RowStep(last), out_(out), in_(in), gamma_(gamma), beta_(beta), eps_(eps) {}

    void run_rows(const Batch&, size_t first, size_t count) const override {
        float mean, rstd;
        for (size_t r = first; r < first + count; ++r)
            if (beta_)
                layernorm().forward(out_.row(r), &mean, &rstd, in_.row(r), gamma_, beta_, eps_, 1, in_.width);
            else
                rmsnorm().forward(out_.row(r), &rstd, in_.row(r), gamma_, eps_, 1, in_.width);
    }

private:
    Buffer &out_, &in_;
    const float *const gamma_, *const beta_;
    const float eps_;
};

class Swiglu : public RowStep {
public:
    Swiglu(bool last, Buffer& out, Buffer& in) : RowStep(last), out_(out), in_(in) {}

    void run_rows(const Batch&, size_t first, size_t count) const override {
        for (size_t r = first; r < first + count; ++r)
            activations().swiglu_forward(out_.row(r), in_.row(r), in_.row(r) + out_.width, out_.width);
    }

private:
    Buffer &out_, &in_;
};

class Add : public RowStep {
public:
    Add(bool last, Buffer& out, Buffer& a, Buffer& b) : RowStep(last), out_(out), a_(a), b_(b) {}

    void run_rows(const Batch&, size_t first, size_t count) const override {
        for (size_t r = first; r < first + count; ++r) {
            const float *a = a_.row(r), *b = b_.row(r);
            float* out = out_.row(r);
            for (size_t c = 0; c < out_.width; ++c) out[c] = a[c] + b[c];
        }
    }

private:
    Buffer &out_, &a_, &b_;
};

class Activate : public RowStep {
public:
    Activate(bool last, Buffer& out, Buffer& in, Activation activation)
        : RowStep(last), out_(out), in_(in), activation_(activation) {}

    void run_rows(const Batch&, size_t first, size_t count) const override {
        for (size_t r = first; r < first + count; ++r) {
            float* y = out_.row(r);
            const float* x = in_.row(r);
            if (activation_ == Activation::gelu) gelu().forward(y, x, out_.width);
            if (activation_ == Activation::gelu_tanh) gelu().tanh_forward(y, x, out_.width);
            if (activation_ == Activation::relu) activations().relu_forward(y, x, out_.width);
            if (activation_ == Activation::silu) activations().silu_forward(y, x, out_.width);
        }
    }

private:
    Buffer &out_, &in_;
    const Activation activation_;
};

class Last : public RowStep {
public:
    Last(Buffer& out, Buffer& in) : RowStep(true), out_(out), in_(in) {}

    void run_rows(const Batch& batch, size_t first, size_t count) const override {
        for (size_t i = first; i < first + count; ++i) {
            const float* from = in_.row(batch.pieces[i].row + batch.pieces[i].count - 1);
            std::copy(from, from + in_.stride, out_.row(i));
        }
    }

private:
    Buffer &out_, &in_;
};

class Linear : public Step {
public:
    Linear(bool last, Buffer& out, Buffer& in, Weights weights, const float* bias, Activation activation, bool add)
        : last_(last), out_(out), in_(in), weights_(weights), bias_(bias), activation_(activation), add_(add),
          panels_(std::max<size_t>(1, BLOCK_BYTES / (4 * panel_words(weights.format, weights.K())))) {}

    size_t blocks(const Batch& batch) const override {
        return blocks_of(weights_.panels(), panels_) * blocks_of(rows(batch), MATMUL_ROWS);
    }

    // Neighboring blocks share rows, which then stay in the cache while the weights stream past.
    void run(const Batch& batch, size_t block, float* product_rp) const override {
        const size_t groups = blocks_of(weights_.panels(), panels_);
        const size_t first = block / groups * MATMUL_ROWS, R = std::min(MATMUL_ROWS, rows(batch) - first);
        const size_t begin = block % groups * panels_, end = std::min(begin + panels_, weights_.panels());
        for (size_t p = begin; p < end; ++p) {
            panels().multiply(product_rp, in_.row(first), in_.stride, weights_.panel(p), weights_.format, R,
                              weights_.K());
            decode().finish(out_.row(first) + p * PANEL, out_.stride, product_rp, bias_ ? bias_ + p * PANEL : nullptr,
                            activation_, add_, R);
        }
    }

private:
    size_t rows(const Batch& batch) const { return last_ ? batch.pieces.size() : batch.rows(); }

    const bool last_;
    Buffer &out_, &in_;
    const Weights weights_;
    const float* const bias_;
    const Activation activation_;
    const bool add_;
    const size_t panels_;
};

// What both halves of attention know: where things are in a row of q, k and v, and in the cache of a layer. The keys
// and values of a source stand in rows without queries, of 0 heads.
struct Heads {
    Buffer& qkv;
    size_t heads, kv_heads, D;
    const KVCache& caches;
};

class Remember : public RowStep {
public:
    Remember(Heads heads, const float* cos, const float* sin) : RowStep(false), h_(heads), cos_(cos), sin_(sin) {}

    void run_rows(const Batch& batch, size_t first, size_t count) const override {
        const size_t D = h_.D;
        for (size_t r = first; r < first + count; ++r) {
            float *q = h_.qkv.row(r), *k = q + h_.heads * D, *v = k + h_.kv_heads * D;
            const size_t sequence = batch.pieces[batch.piece[r]].sequence;
            const size_t position = batch.position(r), angles = position * (D / 2);
            if (cos_)
                for (float* head = q; head < v; head += D)
                    rotary().rotate_halves(head, head, D, cos_ + angles, sin_ + angles, 1, 1, D / 2);
            for (size_t h = 0; h < h_.kv_heads; ++h)
                decode().remember(h_.caches.at(sequence, h), k + h * D, v + h * D, position, D);
        }
    }

private:
    const Heads h_;
    const float *const cos_, *const sin_;
};

class Attend : public Step {
public:
    Attend(Heads heads, Buffer& out, bool source)
        : h_(heads), out_(out), source_(source), group_(heads.heads / heads.kv_heads) {}

    size_t blocks(const Batch& batch) const override {
        size_t total = 0;
        for (const Piece& piece : batch.pieces) total += h_.kv_heads * blocks_of(piece.count * group_, QUERIES);
        return total;
    }

    void run(const Batch& batch, size_t block, float* scratch) const override {
        const Piece* piece = batch.pieces.data();
        for (;; ++piece) {
            const size_t here = h_.kv_heads * blocks_of(piece->count * group_, QUERIES);
            if (block < here) break;
            block -= here;
        }
        const size_t queries = piece->count * group_, head = block % h_.kv_heads;
        const size_t first = block / h_.kv_heads * QUERIES, offset = head * group_ * h_.D;
        const Cache cache = h_.caches.at(source_ ? piece->source : piece->sequence, head);
        decode().attend(out_.row(piece->row) + offset, h_.qkv.row(piece->row) + offset, scratch, cache,
                        source_ ? piece->seen : piece->past, !source_, first, std::min(QUERIES, queries - first),
                        group_, h_.D, out_.stride, h_.qkv.stride);
    }

private:
    const Heads h_;
    Buffer& out_;
    const bool source_;  // the cache is that of the piece's source
    const size_t group_;
};

// A sequence walks through its new tokens one after the other; sequences are independent of each other.
class Recurrent : public Step {
public:
    Recurrent(Buffer& out, Buffer& gates, Cell cell, Weights weights, const Weights* candidate, const float* bias,
              const RecurrentState& state)
        : out_(out), gates_(gates), cell_(cell), weights_(weights), candidate_(candidate ? *candidate : weights),
          bias_(bias), state_(state) {}

    static size_t scratch(size_t H, size_t gates) { return 2 * whole_panels(gates) + 2 * whole_panels(H); }
    size_t blocks(const Batch& batch) const override { return batch.pieces.size(); }

    void run(const Batch& batch, size_t block, float* u) const override {
        const Piece& piece = batch.pieces[block];
        const size_t H = out_.width;
        float *h = state_.at(piece.sequence), *c = h + state_.stride;
        float *m = u + whole_panels(gates_.width), *kept = m + whole_panels(H);
        if (!piece.past) std::fill_n(h, state_.stride * state_.parts, 0.0f);
        std::fill_n(m, whole_panels(H), 0.0f);
        for (size_t r = piece.row; r < piece.row + piece.count; ++r) {
            float *y = out_.row(r), *gates = gates_.row(r);
            multiply(u, h, weights_);
            if (bias_)
                for (size_t i = 0; i < gates_.width; ++i) u[i] += bias_[i];
            if (cell_ == Cell::rnn) {
                std::copy_n(gates, H, y);
                recurrent().rnn_forward(y, u, 1, 1, H);
            } else if (cell_ == Cell::lstm) {
                recurrent().lstm_forward(y, c, gates, u, c, H, 1, 1, H);
            } else if (cell_ == Cell::gru_after) {
                recurrent().gru_after_forward(y, gates, kept, u, h, H, 1, 1, H);
            } else {
                recurrent().gru_reset(m, gates, u, h, H, 1, 1, H);
                multiply(u, m, candidate_);
                recurrent().gru_forward(y, gates, u, h, H, 1, 1, H);
            }
            std::copy_n(y, H, h);
        }
    }

private:
    void multiply(float* u, const float* x, const Weights& weights) const {
        for (size_t p = 0; p < weights.panels(); ++p)
            panels().multiply(u + p * PANEL, x, weights.K(), weights.panel(p), weights.format, 1, weights.K());
    }

    Buffer &out_, &gates_;
    const Cell cell_;
    const Weights weights_, candidate_;
    const float* const bias_;
    const RecurrentState& state_;
};

}  // namespace chainrule::steps
