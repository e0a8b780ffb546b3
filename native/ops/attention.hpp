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

    // At most one of them; element (b, h, t, s) is the sum of index times step away.
    const uint8_t* allowed;
    const float* added;
    size_t mask_step[4];

    bool dropout;
    KeepMask keep;     // over the flat positions of (B, H, T, S)
    float keep_scale;  // 1 / (1 - p)
};

// What backward adds to it. dq, dk and dv are assigned; each may have no data.
struct AttentionGradient {
    Heads<const float> o, dy;
    const float* lse_bht;
    Heads<float> dq, dk, dv;
};

struct AttentionKernels {
    // The queries t .. t + count of the heads that share key head `shared` of batch entry b.
    void (*forward)(Heads<float> o, float* lse_bht, const Attention& call, size_t b, size_t shared, size_t t,
                    size_t count, float* scratch);

    // What the keys s .. s + count of one key head contribute: dk and dv of those keys, and a part of dq.
    void (*backward)(const AttentionGradient& gradient, const Attention& call, size_t b, size_t shared, size_t s,
                     size_t count, float* scratch);

    size_t (*forward_scratch)(const Attention& call);  // in floats
    size_t (*backward_scratch)(const Attention& call, size_t count);
};
CHAINRULE_KERNELS(AttentionKernels, attention)

}  // namespace chainrule
