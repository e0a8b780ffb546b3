#include "decode/decode.hpp"

#include "ops/activations.hpp"
#include "ops/gelu.hpp"
#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

void finish(float* y_rp, size_t ldy, float* product_rp, const float* bias_p, Activation f, bool add, size_t R) {
    if (bias_p)
        for (size_t r = 0; r < R; ++r)
            for (size_t c = 0; c < PANEL; c += LANES) {
                float* v = product_rp + r * PANEL + c;
                store(v, load(v) + load(bias_p + c));
            }
    if (f == Activation::gelu) gelu.forward(product_rp, product_rp, R * PANEL);
    if (f == Activation::gelu_tanh) gelu.tanh_forward(product_rp, product_rp, R * PANEL);
    if (f == Activation::relu) activations.relu_forward(product_rp, product_rp, R * PANEL);
    if (f == Activation::silu) activations.silu_forward(product_rp, product_rp, R * PANEL);
    for (size_t r = 0; r < R; ++r)
        for (size_t c = 0; c < PANEL; c += LANES) {
            const Vec v = load(product_rp + r * PANEL + c);
            float* y = y_rp + r * ldy + c;
            store(y, add ? load(y) + v : v);
        }
}

float* part(const Page& page, size_t before, size_t floats) {
    return page.slab + before * page.count + floats * page.index;
}
float* keys_in(Cache cache, size_t page, size_t D) { return part(cache.pages[page], cache.before, PAGE * D); }
float* values_in(Cache cache, size_t page, size_t D, size_t d) {  // the panel of feature d
    return part(cache.pages[page], cache.before + PAGE * (D + d), PAGE * PANEL);
}

void remember(Cache cache, const float* key_d, const float* value_d, size_t position, size_t D) {
    const size_t page = position / PAGE, place = position % PAGE;
    float* keys = keys_in(cache, page, D) + place / PANEL * PANEL * D + place % PANEL;
    for (size_t d = 0; d < D; ++d) keys[d * PANEL] = key_d[d];
    for (size_t d = 0; d < D; d += PANEL) {
        float* values = values_in(cache, page, D, d) + place * PANEL;
        for (size_t i = d; i < D && i < d + PANEL; ++i) values[i - d] = value_d[i];
    }
}

// In place e^(s - max) of the first n scores and zeros up to `end`, a multiple of LANES; returns their sum.
float softmax(float* s, size_t n, size_t end) {
    const size_t whole = n - n % LANES;
    Vec top = fill(-__builtin_inff());
    for (size_t i = 0; i < whole; i += LANES) top = max(load(s + i), top);
    float highest = largest(top);
    for (size_t i = whole; i < n; ++i) highest = s[i] > highest ? s[i] : highest;
    for (size_t i = n; i < end; ++i) s[i] = -__builtin_inff();
    Vec total = fill(0);
    for (size_t i = 0; i < end; i += LANES) {
        const Vec e = exp(load(s + i) - fill(highest));
        store(s + i, e);
        total = total + e;
    }
    return sum(total);
}

void attend(float* out, const float* q, float* scratch, Cache cache, Scores scores, size_t past, bool causal,
            size_t first, size_t R, size_t G, size_t D, size_t ldo, size_t ldq) {
    const auto sees = [&](size_t r) { return past + (causal ? (first + r) / G + 1 : 0); };
    const size_t seen = sees(R - 1);  // by the last query, at least as many as by any other
    const size_t S = whole_panels(seen), W = whole_panels(D);
    float *scores_rs = scratch, *q_rd = scores_rs + R * S, *mixed_rd = q_rd + R * W;
    for (size_t i = 0; i < R * S; ++i) scores_rs[i] = 0;
    for (size_t i = 0; i < R * W; ++i) mixed_rd[i] = 0;
    for (size_t r = 0; r < R; ++r) {
        const size_t t = (first + r) / G, h = (first + r) % G;
        for (size_t d = 0; d < D; ++d) q_rd[r * W + d] = scores.scale * q[t * ldq + h * D + d];
        if (!scores.bias_hs) continue;
        const float* bias_s = scores.bias_hs + (h + 1) * scores.longest - (past + t + 1);  // of the key at 0
        for (size_t s = 0; s < sees(r); ++s) scores_rs[r * S + s] = bias_s[s];
    }
    for (size_t s = 0; s < S; s += PANEL)
        panels.accumulate(scores_rs + s, S, q_rd, W, keys_in(cache, s / PAGE, D) + s % PAGE * D, R, D);
    float total[QUERIES];
    for (size_t r = 0; r < R; ++r) total[r] = seen ? softmax(scores_rs + r * S, sees(r), S) : 1;
    for (size_t d = 0; d < D; d += PANEL)
        for (size_t s = 0; s < seen; s += PAGE)
            panels.accumulate(mixed_rd + d, W, scores_rs + s, S, values_in(cache, s / PAGE, D, d), R,
                              seen - s < PAGE ? seen - s : PAGE);
    for (size_t r = 0; r < R; ++r) {
        const size_t t = (first + r) / G, h = (first + r) % G;
        for (size_t d = 0; d < D; ++d) out[t * ldo + h * D + d] = mixed_rd[r * W + d] / total[r];
    }
}

}  // namespace

const Decode decode = {finish, remember, attend};

}  // namespace chainrule::CHAINRULE_ISA
