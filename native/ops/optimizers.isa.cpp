// Update rules over flat arrays, each in one pass over memory.        Derivation: docs/derivations/optimizers.md
//
// No fused multiply-add: every product is rounded, as in NumPy. This costs nothing, since memory is the limit.
#include "ops/optimizers.hpp"

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

INLINE Vec decayed(Vec w, Vec g, float decay) {  // [OP.2]
    return decay != 0 ? w * fill(decay) + g : g;
}

INLINE Vec root(Vec x, float eps_inside, float eps_outside) {  // one of the two is 0: [OP.8] or [OP.9]
    return sqrt(x + fill(eps_inside)) + fill(eps_outside);
}

void sgd(float* w_n, const float* g_n, float scale, float decay, float lr, size_t n) {
    for (size_t i = 0; i < n; i += LANES) {
        const Vec w = load_next(w_n + i, n - i), g = load_next(g_n + i, n - i) * fill(scale);
        store_next(w_n + i, w - decayed(w, g, decay) * fill(lr), n - i);  // [OP.1]
    }
}

void momentum(float* w_n, float* v_n, const float* g_n, float scale, float decay, float momentum, float inside,
              float outside, bool nesterov, size_t n) {
    for (size_t i = 0; i < n; i += LANES) {
        const Vec w = load_next(w_n + i, n - i), g = load_next(g_n + i, n - i) * fill(scale);
        const Vec move = decayed(w, g, decay) * fill(inside);
        const Vec v = load_next(v_n + i, n - i) * fill(momentum) + move;  // [OP.3] [OP.4]
        store_next(v_n + i, v, n - i);
        // with nesterov                                                                                          [OP.5]
        store_next(w_n + i, w - (nesterov ? move + v * fill(momentum) : v) * fill(outside), n - i);
    }
}

void rms(float* w_n, float* v_n, const float* g_n, float scale, float keep, float add, float eps_inside,
         float eps_outside, float lr, size_t n) {
    for (size_t i = 0; i < n; i += LANES) {
        const Vec w = load_next(w_n + i, n - i), g = load_next(g_n + i, n - i) * fill(scale);
        const Vec v = load_next(v_n + i, n - i) * fill(keep) + g * g * fill(add);  // [OP.6] [OP.10]
        store_next(v_n + i, v, n - i);
        store_next(w_n + i, w - g / root(v, eps_inside, eps_outside) * fill(lr), n - i);  // [OP.7] [OP.11]
    }
}

void adam(float* w_n, float* m_n, float* v_n, const float* g_n, float scale, float keep_m, float add_m, float keep_v,
          float add_v, float bias, float eps_inside, float eps_outside, float lr, float shrink, size_t n) {
    for (size_t i = 0; i < n; i += LANES) {
        const Vec w = load_next(w_n + i, n - i), g = load_next(g_n + i, n - i) * fill(scale);
        const Vec m = load_next(m_n + i, n - i) * fill(keep_m) + g * fill(add_m);      // [OP.12]
        const Vec v = load_next(v_n + i, n - i) * fill(keep_v) + g * g * fill(add_v);  // [OP.13]
        store_next(m_n + i, m, n - i);
        store_next(v_n + i, v, n - i);
        const Vec move = m / root(v / fill(bias), eps_inside, eps_outside) * fill(lr);  // [OP.14]
        store_next(w_n + i, w * fill(shrink) - move, n - i);                            // [OP.15] [OP.16]
    }
}

INLINE Vec sign(Vec x) {  // 0 and NaN stay what they are
    const Vec zero = fill(0), one = fill(1);
    return select(x > zero, one, select(x < zero, zero - one, x));
}

void lion(float* w_n, float* m_n, const float* g_n, float scale, float keep_move, float add_move, float keep_m,
          float add_m, float lr, float shrink, size_t n) {
    for (size_t i = 0; i < n; i += LANES) {
        const Vec w = load_next(w_n + i, n - i), m = load_next(m_n + i, n - i);
        const Vec g = load_next(g_n + i, n - i) * fill(scale);
        // [OP.17] [OP.18]
        store_next(w_n + i, w * fill(shrink) - sign(m * fill(keep_move) + g * fill(add_move)) * fill(lr), n - i);
        store_next(m_n + i, m * fill(keep_m) + g * fill(add_m), n - i);
    }
}

double sum_of_squares(const float* x_n, size_t n) {
    double lane[LANES] = {};
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t l = 0; l < LANES; ++l) lane[l] += double(x_n[i + l]) * double(x_n[i + l]);
    for (size_t i = whole; i < n; ++i) lane[i - whole] += double(x_n[i]) * double(x_n[i]);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
}

void scale(float* x_n, float factor, size_t n) {
    for (size_t i = 0; i < n; i += LANES) store_next(x_n + i, load_next(x_n + i, n - i) * fill(factor), n - i);
}

}  // namespace

const Optimizers optimizers = {sgd, momentum, rms, adam, lion, sum_of_squares, scale};

}  // namespace chainrule::CHAINRULE_ISA
