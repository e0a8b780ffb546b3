#pragma once

#include <stdint.h>

#include <algorithm>

#include "gemm/gemm.hpp"

namespace chainrule {

// Cross-entropy (ops/cross_entropy.hpp) of logits z_vr that stand in columns, rows ldz apart, for a vocabulary cut into blocks of V
// classes.
struct CrossEntropyColumns {
    // Of each column: its maximum, the sum of e^(z - maximum) and, unless sum_r is null, the sum of z.
    void (*reduce)(float* peak_r, float* total_r, float* sum_r, const float* z_vr, size_t ldz, size_t V, size_t R);

    // The maxima and sums of B blocks, in their order, as one.
    void (*merge)(float* peak_r, float* total_r, const float* peak_br, const float* total_br, size_t B, size_t R);

    // Replaces z by slope_r (softmax(z) - floor). The caller subtracts gap slope_r at the target.
    void (*gradients)(float* z_vr, size_t ldz, const float* peak_r, const float* total_r, const float* slope_r, float floor,
                      size_t V, size_t R);
};
CHAINRULE_KERNELS(CrossEntropyColumns, cross_entropy_columns)

// The cross-entropy of z = x Wᵀ, `rows` rows of x at a time, so that the logits of all rows never exist together.
struct LinearCrossEntropy {
    const float *x_nc, *w_vc, *scale_n;
    const int64_t* target_n;
    float gap, floor;
    size_t N, V, C, rows;
    Precision precision;
    const size_t ldz = spread_row(std::min(rows, N));  // rows of logits spread over the sets of a cache

    // With slope_n, the gradient of each row's loss, this computes the fused gradients too. dx_nc is assigned, and dw_vc too
    // unless it `adds`; either may be null.
    void forward(float* loss_n, float* peak_n, float* total_n, float* dx_nc, float* dw_vc, bool adds,
                 const float* slope_n) const;
    void backward(float* dx_nc, float* dw_vc, bool adds, const float* peak_n, const float* total_n,
                  const float* slope_n) const;

private:
    template <class Body>
    void for_chunks(Body&& body) const;
    void no_rows(float* dw_vc, bool adds) const;
    void logits(float* z_vr, size_t n, size_t R) const;
    void losses(float* loss_n, float* peak_n, float* total_n, const float* z_vr, size_t n, size_t R) const;
    void gradients(float* dx_nc, float* dw_vc, bool adds, float* z_vr, const float* peak_n, const float* total_n,
                   const float* slope_n, size_t n, size_t R) const;
};

}  // namespace chainrule
