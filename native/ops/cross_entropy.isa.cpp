// Softmax and cross-entropy of rows of logits.        Derivation: docs/derivations/cross_entropy.md
#include "ops/cross_entropy.hpp"

#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

// Logits per block: they stay in the L1 cache between the maximum and the sum of exponentials, so a row is read from
// memory once. Sums over a row are made per block first, which keeps their error small.
constexpr size_t BLOCK = 4096;
constexpr float INFINITE = __builtin_inff();

float largest_of(const float* x, size_t n) {  // skips NaN; the sum of exponentials shows it
    Vec a = fill(-INFINITE), b = a;
    size_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a = max(load(x + i), a);
        b = max(load(x + i + LANES), b);
    }
    for (; i + LANES <= n; i += LANES) a = max(load(x + i), a);
    if (i < n) b = max(load_some(x + i, n - i, -INFINITE), b);
    return largest(max(a, b));
}

float sum_of_exp(const float* x, float peak, size_t n) {
    Vec total = fill(0);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) total = total + exp_negative(load(x + i) - fill(peak));
    if (i < n) total = total + exp_negative(load_some(x + i, n - i, -INFINITE) - fill(peak));
    return sum(total);
}

float sum_above(const float* x, float peak, size_t n) {  // Σ (x - peak)
    Vec total = fill(0);
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) total = total + (load(x + i) - fill(peak));
    if (i < n) total = total + (load_some(x + i, n - i, peak) - fill(peak));
    return sum(total);
}

float exp_negative(float x) {
    float lane[LANES];
    store(lane, exp_negative(fill(x)));
    return lane[0];
}

// A larger maximum found on the way rescales the sum made so far: e^(x - new) = e^(x - old) e^(old - new).     [CE.5]
void forward(float* loss_r, float* peak_r, float* total_r, const float* x_rv, const int64_t* target_r,
             const float* scale_r, float gap, float floor, size_t R, size_t V) {
    for (size_t r = 0; r < R; ++r) {
        const float* x = x_rv + r * V;
        float peak = -INFINITE, shift = 0, total = 0;  // shift is peak, or 0 while every logit is -inf
        double sum_x = 0;
        for (size_t v = 0; v < V; v += BLOCK) {
            const size_t n = V - v < BLOCK ? V - v : BLOCK;
            const float block_peak = largest_of(x + v, n);
            if (block_peak > peak) {
                total *= exp_negative(peak - block_peak);
                peak = shift = block_peak;
            }
            total += sum_of_exp(x + v, shift, n);
            if (floor != 0) sum_x += sum_above(x + v, shift, n) + double(n) * shift;
        }
        if (total == 0) total = 1;  // a row of -inf
        // log Σ_j e^x_j - Σ_i t_i x_i                                                                            [CE.2]
        float loss = __builtin_logf(total) - gap * (x[target_r[r]] - shift);
        if (floor != 0) loss -= float(floor * (sum_x - double(V) * shift));
        loss_r[r] = scale_r[r] == 0 ? 0 : loss * scale_r[r];
        peak_r[r] = shift;
        total_r[r] = total;
    }
}

void backward(float* dx_rv, const float* x_rv, const float* peak_r, const float* total_r, const int64_t* target_r,
              const float* scale_r, float gap, float floor, size_t R, size_t V) {
    for (size_t r = 0; r < R; ++r) {
        const float* x = x_rv + r * V;
        float* dx = dx_rv + r * V;
        if (scale_r[r] == 0) {
            for (size_t v = 0; v < V; ++v) dx[v] = 0;
            continue;
        }
        // forward was: loss = log Σ e^x - Σ t x                                                                   [CE.4]
        const Vec peak = fill(peak_r[r]), scale = fill(scale_r[r] / total_r[r]), offset = fill(-floor * scale_r[r]);
        size_t v = 0;
        for (; v + LANES <= V; v += LANES) store(dx + v, fma(exp_negative(load(x + v) - peak), scale, offset));
        if (v < V) store_some(dx + v, fma(exp_negative(load_some(x + v, V - v) - peak), scale, offset), V - v);
        dx[target_r[r]] -= gap * scale_r[r];
    }
}

}  // namespace

const CrossEntropy cross_entropy = {forward, backward};

}  // namespace chainrule::CHAINRULE_ISA
