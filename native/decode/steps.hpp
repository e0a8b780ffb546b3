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

// A step that works on each row alone: row(batch, r).
template <class Row>
class EachRow : public Step {
public:
    EachRow(bool last, Row row) : last_(last), row_(row) {}
    size_t blocks(const Batch& batch) const override { return blocks_of(batch.rows(last_), ROWS); }
    void run(const Batch& batch, size_t block, float*) const override {
        const size_t end = std::min((block + 1) * ROWS, batch.rows(last_));
        for (size_t r = block * ROWS; r < end; ++r) row_(batch, r);
    }

private:
    const bool last_;
    const Row row_;
};

template <class Row>
std::unique_ptr<Step> each_row(bool last, Row row) {
    return std::make_unique<EachRow<Row>>(last, row);
}

inline auto embedding(Buffer& out, Weights table, float scale, const float* position_tc) {
    return each_row(false, [=, &out](const Batch& batch, size_t r) {
        const size_t token = batch.token[r];
        float* y = out.row(r);
        panels().column(y, table.panel(token / PANEL), table.format, token % PANEL, table.K());
        if (scale != 1)
            for (size_t c = 0; c < out.width; ++c) y[c] *= scale;
        if (!position_tc) return;
        const float* position_c = position_tc + batch.position(r) * out.width;
        for (size_t c = 0; c < out.width; ++c) y[c] += position_c[c];
    });
}

inline auto layernorm(bool last, Buffer& out, Buffer& in, const float* gamma, const float* beta, float eps) {
    return each_row(last, [=, &out, &in](const Batch&, size_t r) {
        float mean, rstd;
        chainrule::layernorm().forward(out.row(r), &mean, &rstd, in.row(r), gamma, beta, eps, 1, in.width);
    });
}

inline auto rmsnorm(bool last, Buffer& out, Buffer& in, const float* gamma, float eps) {
    return each_row(last, [=, &out, &in](const Batch&, size_t r) {
        float rstd;
        chainrule::rmsnorm().forward(out.row(r), &rstd, in.row(r), gamma, eps, 1, in.width);
    });
}

inline auto swiglu(bool last, Buffer& out, Buffer& in) {
    return each_row(last, [&out, &in](const Batch&, size_t r) {
        activations().swiglu_forward(out.row(r), in.row(r), in.row(r) + out.width, out.width);
    });
}

inline auto forward_of(Activation kind) {
    return kind == Activation::gelu        ? gelu().forward
           : kind == Activation::gelu_tanh ? gelu().tanh_forward
           : kind == Activation::relu      ? activations().relu_forward
                                           : activations().silu_forward;
}

inline auto gated(bool last, Buffer& out, Buffer& in, Activation kind) {
    return each_row(last, [=, &out, &in](const Batch&, size_t r) {
        const float* up_c = in.row(r) + out.width;
        float* out_c = out.row(r);
        forward_of(kind)(out_c, in.row(r), out.width);
        for (size_t c = 0; c < out.width; ++c) out_c[c] *= up_c[c];
    });
}

inline auto add(bool last, Buffer& out, Buffer& a, Buffer& b) {
    return each_row(last, [&out, &a, &b](const Batch&, size_t r) {
        const float *a_c = a.row(r), *b_c = b.row(r);
        float* out_c = out.row(r);
        for (size_t c = 0; c < out.width; ++c) out_c[c] = a_c[c] + b_c[c];
    });
}

inline auto activation(bool last, Buffer& out, Buffer& in, Activation kind) {
    return each_row(last, [=, &out, &in](const Batch&, size_t r) {
        forward_of(kind)(out.row(r), in.row(r), out.width);
    });
}

inline auto last(Buffer& out, Buffer& in) {
    return each_row(true, [&out, &in](const Batch& batch, size_t i) {
        std::copy_n(in.row(batch.pieces[i].row + batch.pieces[i].count - 1), in.stride, out.row(i));
    });
}

class Linear : public Step {
public:
    Linear(bool last, Buffer& out, Buffer& in, Weights weights, const float* bias, Activation activation, bool add)
        : last_(last), out_(out), in_(in), weights_(weights), bias_(bias), activation_(activation), add_(add),
          panels_(std::max<size_t>(1, BLOCK_BYTES / (4 * panel_words(weights.format, weights.K())))) {}

    size_t blocks(const Batch& batch) const override {
        return blocks_of(weights_.panels(), panels_) * blocks_of(batch.rows(last_), MATMUL_ROWS);
    }

    // Neighboring blocks share rows, which then stay in the cache while the weights stream past.
    void run(const Batch& batch, size_t block, float* product_rp) const override {
        const size_t groups = blocks_of(weights_.panels(), panels_);
        const size_t first = block / groups * MATMUL_ROWS, R = std::min(MATMUL_ROWS, batch.rows(last_) - first);
        const size_t begin = block % groups * panels_, end = std::min(begin + panels_, weights_.panels());
        for (size_t p = begin; p < end; ++p) {
            panels().multiply(product_rp, in_.row(first), in_.stride, weights_.panel(p), weights_.format, R,
                              weights_.K());
            decode().finish(out_.row(first) + p * PANEL, out_.stride, product_rp, bias_ ? bias_ + p * PANEL : nullptr,
                            activation_, add_, R);
        }
    }

private:
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

// The keys of each row, normalized if there are gains and turned by its position if there are angles, and its values:
// into the cache. Queries are normalized and turned too.
inline auto remember(Heads heads, const float* cos, const float* sin, HeadNorms norms = {}) {
    return each_row(false, [=](const Batch& batch, size_t r) {
        const size_t D = heads.D, position = batch.position(r), angles = position * (D / 2);
        const size_t sequence = batch.pieces[batch.piece[r]].sequence;
        float *q = heads.qkv.row(r), *k = q + heads.heads * D, *v = k + heads.kv_heads * D;
        if (norms.gamma_q)
            for (float *head = q, rstd; head < v; head += D)
                chainrule::rmsnorm().forward(head, &rstd, head, head < k ? norms.gamma_q : norms.gamma_k, norms.eps,
                                             1, D);
        if (cos)
            for (float* head = q; head < v; head += D)
                rotary().rotate_halves(head, head, D, cos + angles, sin + angles, 1, 1, D / 2);
        for (size_t h = 0; h < heads.kv_heads; ++h)
            decode().remember(heads.caches.at(sequence, h), k + h * D, v + h * D, position, D);
    });
}

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
