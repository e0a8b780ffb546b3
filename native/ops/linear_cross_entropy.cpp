// A chunk of rows at a time, with its logits in columns: z_vr = W xᵀ. Then the first GEMM reads W in place and the last
// one dz, without packing: both are far larger than x.        Derivation: docs/derivations/linear_cross_entropy.md
#include "ops/linear_cross_entropy.hpp"

#include <cmath>

#include "runtime/memory.hpp"
#include "runtime/pool.hpp"

namespace chainrule {
namespace {

constexpr size_t BLOCK = 128;  // classes: part of the result, since each block is summed by itself first

}  // namespace

template <class Body>  // body(memory for logits, first row, number of rows)
void LinearCrossEntropy::for_chunks(Body&& body) const {
    const Scratch z_vr(ldz * V);
    for (size_t n = 0; n < N; n += rows) body(z_vr.data(), n, std::min(rows, N - n));
}

void LinearCrossEntropy::no_rows(float* dw_vc, bool adds) const {
    if (dw_vc && !adds) std::fill_n(dw_vc, V * C, 0.0f);
}

void LinearCrossEntropy::logits(float* z_vr, size_t n, size_t R) const {
    gemm(z_vr, ldz, {w_vc, C, 1}, {x_nc + n * C, 1, C}, nullptr, false, V, R, C, precision);
}

void LinearCrossEntropy::losses(float* loss_n, float* peak_n, float* total_n, const float* z_vr, size_t n,
                                size_t R) const {
    const size_t B = (V + BLOCK - 1) / BLOCK;
    const Scratch partial(3 * B * R);
    float *peak_br = partial.data(), *total_br = peak_br + B * R, *sum_br = total_br + B * R;
    for_row_blocks(V, R, BLOCK, [&](size_t b, size_t v, size_t count) {
        cross_entropy_columns().reduce(peak_br + b * R, total_br + b * R, floor ? sum_br + b * R : nullptr,
                                       z_vr + v * ldz, ldz, count, R);
    });
    cross_entropy_columns().merge(peak_n + n, total_n + n, peak_br, total_br, B, R);
    for (size_t r = 0; r < R; ++r) {  // log Σ_j e^z_j - Σ_i t_i z_i                                               [CE.2]
        const float peak = peak_n[n + r];
        float loss = std::log(total_n[n + r]) - gap * (z_vr[target_n[n + r] * ldz + r] - peak);
        if (floor != 0) {
            double sum = 0;
            for (size_t b = 0; b < B; ++b) sum += sum_br[b * R + r];
            loss -= float(floor * (sum - double(V) * peak));
        }
        loss_n[n + r] = scale_n[n + r] == 0 ? 0 : loss * scale_n[n + r];
    }
}

// z_vr becomes dz_vr.
void LinearCrossEntropy::gradients(float* dx_nc, float* dw_vc, bool adds, float* z_vr, const float* peak_n,
                                   const float* total_n, const float* slope_n, size_t n, size_t R) const {
    for_row_blocks(V, R, BLOCK, [&](size_t, size_t v, size_t count) {  // [LC.1]
        cross_entropy_columns().gradients(z_vr + v * ldz, ldz, peak_n + n, total_n + n, slope_n + n, floor, count, R);
    });
    for (size_t r = 0; r < R; ++r) z_vr[target_n[n + r] * ldz + r] -= gap * slope_n[n + r];
    // forward was: z = x Wᵀ                                                                                [LC.2] [LC.3]
    if (dx_nc) gemm(dx_nc + n * C, C, {z_vr, 1, ldz}, {w_vc, C, 1}, nullptr, false, R, C, V, precision);
    if (dw_vc) gemm(dw_vc, C, {z_vr, ldz, 1}, {x_nc + n * C, C, 1}, nullptr, adds || n > 0, V, C, R, precision);
}

void LinearCrossEntropy::forward(float* loss_n, float* peak_n, float* total_n, float* dx_nc, float* dw_vc, bool adds,
                                 const float* slope_n) const {
    if (slope_n && N == 0) no_rows(dw_vc, adds);
    for_chunks([&](float* z_vr, size_t n, size_t R) {
        logits(z_vr, n, R);
        losses(loss_n, peak_n, total_n, z_vr, n, R);
        if (slope_n) gradients(dx_nc, dw_vc, adds, z_vr, peak_n, total_n, slope_n, n, R);
    });
}

void LinearCrossEntropy::backward(float* dx_nc, float* dw_vc, bool adds, const float* peak_n, const float* total_n,
                                  const float* slope_n) const {
    if (N == 0) no_rows(dw_vc, adds);
    for_chunks([&](float* z_vr, size_t n, size_t R) {
        logits(z_vr, n, R);
        gradients(dx_nc, dw_vc, adds, z_vr, peak_n, total_n, slope_n, n, R);
    });
}

}  // namespace chainrule
