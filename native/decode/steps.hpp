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
Step each_row(bool last, Row row) {
    auto blocks = [=](const Batch& batch) { return blocks_of(batch.rows(last), ROWS); };
    auto run = [=](const Batch& batch, size_t block, float*) {
        const size_t end = std::min((block + 1) * ROWS, batch.rows(last));
        for (size_t r = block * ROWS; r < end; ++r) row(batch, r);
    };
    return {blocks, run};
}

inline auto embedding(Buffer& out, Weights table, float scale, const float* position_tc, const float* prompt_pc) {
    return each_row(false, [=, &out](const Batch& batch, size_t r) {
        const size_t token = batch.token[r];
        float* y = out.row(r);
        if (token < table.outputs) {
            const auto column = in_blocks(table.format) ? chainrule::blocks().column : panels().column;
            column(y, table.panel(token / PANEL), table.format, token % PANEL, table.K());
            std::fill(y + out.width, y + table.K(), 0.0f);  // where a least weight stands for 0
        } else
            std::copy_n(prompt_pc + (token - table.outputs) * out.width, out.width, y);
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

inline auto scale(bool last, Buffer& out, Buffer& in, float factor) {
    return each_row(last, [=, &out, &in](const Batch&, size_t r) {
        for (size_t c = 0; c < out.width; ++c) out.row(r)[c] = factor * in.row(r)[c];
    });
}

inline auto activation(bool last, Buffer& out, Buffer& in, Activation kind) {
    return each_row(last, [=, &out, &in](const Batch&, size_t r) {
        forward_of(kind)(out.row(r), in.row(r), out.width);
    });
}

inline auto last(Buffer& out, Buffer& in) {
    return each_row(true, [&out, &in](const Batch& batch, size_t i) {
        std::copy_n(in.row(batch.kept[i]), in.stride, out.row(i));
    });
}

// What a matmul in integers reads.
inline auto round(bool last, Buffer& in) {
    return each_row(last, [&in](const Batch&, size_t r) {
        chainrule::blocks().round(in.rounded(r), in.row(r), in.groups() * GROUP);
    });
}

// Outputs of `out` from `offset` on, which is a whole number of panels
inline Step linear(bool last, Buffer& out, size_t offset, Buffer& in, Weights weights, const float* bias,
                   Activation activation, bool add) {
    const size_t group = std::max<size_t>(1, BLOCK_BYTES / (4 * panel_words(weights.format, weights.K())));  // panels
    const size_t groups = blocks_of(weights.panels(), group);
    auto blocks = [=](const Batch& batch) { return groups * blocks_of(batch.rows(last), MATMUL_ROWS); };
    // Neighboring blocks share rows, which then stay in the cache while the weights stream past.
    auto run = [=, &out, &in](const Batch& batch, size_t block, float* product_rp) {
        const size_t first = block / groups * MATMUL_ROWS, R = std::min(MATMUL_ROWS, batch.rows(last) - first);
        const size_t begin = block % groups * group, end = std::min(begin + group, weights.panels());
        for (size_t p = begin; p < end; ++p) {
            if (in_blocks(weights.format))
                chainrule::blocks().multiply(product_rp, in.rounded(first), in.groups(), weights.panel(p), weights.format, R,
                                  weights.K());
            else
                panels().multiply(product_rp, in.row(first), in.stride, weights.panel(p), weights.format, R,
                                  weights.K());
            decode().finish(out.row(first) + offset + p * PANEL, out.stride, product_rp, bias ? bias + p * PANEL : nullptr,
                            activation, add, R);
        }
    };
    return {blocks, run};
}

// What both halves of attention know: where things are in a row of q, k and v, and in the cache of a layer. The keys
// and values of a source stand in rows without queries, of 0 heads.
struct Heads {
    Buffer& qkv;
    size_t heads, kv_heads, D;
    const KVCache& caches;
};

// The keys of each row, normalized if there are gains and turned by its position if there are angles, and its values:
// into the cache, behind the prefix, which comes with the first row. Queries are normalized and turned too.
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
        const Prefix& prefix = heads.caches.prefix;
        for (size_t h = 0; h < heads.kv_heads; ++h) {
            const Cache cache = heads.caches.at(sequence, h);
            for (size_t p = h * prefix.length; !position && p < (h + 1) * prefix.length; ++p)
                decode().remember(cache, prefix.key_hpd + p * D, prefix.value_hpd + p * D, p - h * prefix.length, D);
            decode().remember(cache, k + h * D, v + h * D, prefix.length + position, D);
        }
    });
}

// With `source` the cache is that of the piece's source.
inline Step attend(Heads heads, Buffer& out, Scores scores, bool source) {
    const size_t group = heads.heads / heads.kv_heads;
    auto blocks_in = [=](const Piece& piece) { return heads.kv_heads * blocks_of(piece.count * group, QUERIES); };
    auto blocks = [=](const Batch& batch) {
        size_t total = 0;
        for (const Piece& piece : batch.pieces) total += blocks_in(piece);
        return total;
    };
    auto run = [=, &out](const Batch& batch, size_t block, float* scratch) {
        const Piece* piece = batch.pieces.data();
        for (; block >= blocks_in(*piece); ++piece) block -= blocks_in(*piece);
        const size_t queries = piece->count * group, head = block % heads.kv_heads;
        const size_t first = block / heads.kv_heads * QUERIES, offset = head * group * heads.D;
        const Cache cache = heads.caches.at(source ? piece->source : piece->sequence, head);
        Scores here = scores;
        if (here.bias_hs) here.bias_hs += head * group * here.longest;
        const size_t past = heads.caches.prefix.length + (source ? piece->seen : piece->past);
        decode().attend(out.row(piece->row) + offset, heads.qkv.row(piece->row) + offset, scratch, cache, here, past,
                        !source, first, std::min(QUERIES, queries - first), group, heads.D, out.stride,
                        heads.qkv.stride);
    };
    return {blocks, run};
}

inline size_t recurrent_scratch(size_t H, size_t gates) {
    return 2 * whole_panels(gates) + 2 * whole_panels(H) + whole_panels(H) / GROUP * ROUNDED_FLOATS;
}

// A sequence walks through its new tokens one after the other; sequences are independent of each other.
inline Step recurrent(Buffer& out, Buffer& gates, Cell cell, Weights weights, Weights candidate, const float* bias,
                      const RecurrentState& state) {
    auto multiply = [](float* u, const float* x, const Weights& weights, Rounded* rounded) {
        const size_t K = weights.K();
        if (in_blocks(weights.format)) chainrule::blocks().round(rounded, x, K);
        for (size_t p = 0; p < weights.panels(); ++p)
            if (in_blocks(weights.format))
                chainrule::blocks().multiply(u + p * PANEL, rounded, K / GROUP, weights.panel(p), weights.format, 1, K);
            else
                panels().multiply(u + p * PANEL, x, K, weights.panel(p), weights.format, 1, K);
    };
    auto blocks = [](const Batch& batch) { return batch.pieces.size(); };
    auto run = [=, &out, &gates, &state](const Batch& batch, size_t block, float* u) {
        const Piece& piece = batch.pieces[block];
        const auto& cells = chainrule::recurrent();
        const size_t H = out.width;
        float *h = state.at(piece.sequence), *c = h + state.stride;
        float *m = u + whole_panels(gates.width), *kept = m + whole_panels(H);
        Rounded* rounded = reinterpret_cast<Rounded*>(kept + whole_panels(gates.width) + whole_panels(H));
        if (!piece.past) std::fill_n(h, state.stride * state.parts, 0.0f);
        std::fill_n(m, whole_panels(H), 0.0f);
        for (size_t r = piece.row; r < piece.row + piece.count; ++r) {
            float *y = out.row(r), *gate = gates.row(r);
            multiply(u, h, weights, rounded);
            if (bias)
                for (size_t i = 0; i < gates.width; ++i) u[i] += bias[i];
            if (cell == Cell::rnn) {
                std::copy_n(gate, H, y);
                cells.rnn_forward(y, u, 1, 1, H);
            } else if (cell == Cell::lstm) {
                cells.lstm_forward(y, c, gate, u, c, H, 1, 1, H);
            } else if (cell == Cell::gru_after) {
                cells.gru_after_forward(y, gate, kept, u, h, H, 1, 1, H);
            } else {
                cells.gru_reset(m, gate, u, h, H, 1, 1, H);
                multiply(u, m, candidate, rounded);
                cells.gru_forward(y, gate, u, h, H, 1, 1, H);
            }
            std::copy_n(y, H, h);
        }
    };
    return {blocks, run};
}

}  // namespace chainrule::steps
