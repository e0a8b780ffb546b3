// Softmax and cross-entropy of columns of logits, sixteen columns at a time.
// Derivations: docs/derivations/cross_entropy.md, docs/derivations/linear_cross_entropy.md
#include "ops/linear_cross_entropy.hpp"

#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

constexpr float INFINITE = __builtin_inff();

// The maximum, but 0 for a column of -inf alone: -inf minus -inf would be NaN.
INLINE Vec as_shift(Vec peak) {
    return select(peak == fill(-INFINITE), fill(0), peak);
}

void reduce(float* peak_r, float* total_r, float* sum_r, const float* z_vr, size_t ldz, size_t V, size_t R) {
    for (size_t r = 0; r < R; r += LANES) {
        const size_t n = R - r;
        Vec peak = fill(-INFINITE), total = fill(0), sum = fill(0);
        for (size_t v = 0; v < V; ++v) peak = max(load_next(z_vr + v * ldz + r, n), peak);  // skips NaN; the sum shows it
        const Vec shift = as_shift(peak);
        for (size_t v = 0; v < V; ++v) {
            const Vec above = load_next(z_vr + v * ldz + r, n) - shift;
            total = total + exp_negative(above);
            if (sum_r) sum = sum + above;
        }
        store_next(peak_r + r, peak, n);
        store_next(total_r + r, total, n);
        if (sum_r) store_next(sum_r + r, fma(shift, fill(float(V)), sum), n);
    }
}

void merge(float* peak_r, float* total_r, const float* peak_br, const float* total_br, size_t B, size_t R) {
    for (size_t r = 0; r < R; r += LANES) {
        const size_t n = R - r;
        Vec peak = fill(-INFINITE), total = fill(0);
        for (size_t b = 0; b < B; ++b) peak = max(load_next(peak_br + b * R + r, n), peak);
        const Vec shift = as_shift(peak);
        for (size_t b = 0; b < B; ++b)  // [CE.5]
            total = fma(load_next(total_br + b * R + r, n), exp_negative(load_next(peak_br + b * R + r, n) - shift), total);
        store_next(peak_r + r, shift, n);
        store_next(total_r + r, select(total == fill(0), fill(1), total), n);
    }
}

void gradients(float* z_vr, size_t ldz, const float* peak_r, const float* total_r, const float* slope_r, float floor, size_t V,
               size_t R) {
    for (size_t r = 0; r < R; r += LANES) {
        const size_t n = R - r;
        const Vec peak = load_next(peak_r + r, n), slope = load_next(slope_r + r, n);
        const Vec scale = slope / load_next(total_r + r, n, 1), offset = slope * fill(-floor);
        for (size_t v = 0; v < V; ++v) {  // forward was: loss = log Σ e^z - Σ t z, t = floor but at the target      [LC.1]
            const Vec dz = fma(exp_negative(load_next(z_vr + v * ldz + r, n) - peak), scale, offset);
            store_next(z_vr + v * ldz + r, select(slope == fill(0), fill(0), dz), n);
        }
    }
}

}  // namespace

const CrossEntropyColumns cross_entropy_columns = {reduce, merge, gradients};

}  // namespace chainrule::CHAINRULE_ISA
