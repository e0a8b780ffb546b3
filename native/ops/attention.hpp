#pragma once

#include "runtime/isa.hpp"
#include "runtime/philox.hpp"

namespace chainrule {

// Matrices by batch entry and head, somewhere in memory; the rows of each are contiguous and `row` apart.
template <class Scalar>
struct Heads {
    Scalar* data;
    size_t batch, head, row;
    Scalar* at(size_t b, size_t h, size_t r) const { return data + b * batch + h * head + r * row; }
};

// One call. Queries (B, H, T, D), keys (B, Hk, S, D), values (B, Hk, S, Dv); H / Hk query heads share a key head.
struct Attention {
    size_t B, H, Hk, T, S, D, Dv;
    Heads<const float> q, k, v;
    float scale;
    bool causal;  // query t sees the keys up to t + S - T

    // Where a query may attend, and what is added to the scores: either may be null. Strides of the axes (b, h, t, s) in
    // elements; negative ones wrap.
    const uint8_t* allowed;
    size_t allowed_stride[4];
    const float* added;
    size_t added_stride[4];

    bool dropout;
    KeepMask keep;     // over the flat positions of (B, H, T, S)
    float keep_scale;  // 1 / (1 - p)
};

// The other arguments of backward. dq, dk and dv are assigned; the data of each may be null.
struct AttentionGradient {
    Heads<const float> o, dy;
    const float* lse_bht;
    Heads<float> dq, dk, dv;
    float* diagonals_hn = nullptr;  // (H, T + S - 1), or null: sums of dZ over b and where s - t is n - (T - 1); assigned
};

// On the pool.
void attention_forward(Heads<float> o, float* lse_bht, const Attention& call);
void attention_backward(const AttentionGradient& gradient, const Attention& call);

struct AttentionKernels {
    // Queries t .. t + count of the heads that share key head hk of batch entry b.
    void (*forward)(Heads<float> o, float* lse_bht, const Attention& call, size_t b, size_t hk, size_t t, size_t count,
                    float* scratch);

    // Keys s .. s + count of key head hk: dk and dv of these keys, and their part of dq and of the diagonals.
    void (*backward)(const AttentionGradient& gradient, const Attention& call, size_t b, size_t hk, size_t s,
                     size_t count, float* scratch);

    size_t (*forward_scratch)(const Attention& call);  // in floats
    size_t (*backward_scratch)(const Attention& call, size_t count);
};
CHAINRULE_KERNELS(AttentionKernels, attention)

}  // namespace chainrule
