// What a recurrent cell does beside its matrix product.        Derivation: docs/derivations/recurrent.md
#include "recurrent.hpp"

#include "vecmath.hpp"

namespace chainrule::CHAINRULE_LEVEL {
namespace {

struct Whole {  // a count known when compiling
    constexpr operator size_t() const { return LANES; }
};

// body(r, h, n): up to sixteen hidden units of a row, n of them real.
template <class Body>
INLINE void each(size_t R, size_t H, Body body) {
    const size_t whole = H - H % LANES;
    for (size_t r = 0; r < R; ++r) {
        for (size_t h = 0; h < whole; h += LANES) body(r, h, Whole());
        if (whole < H) body(r, whole, H - whole);
    }
}

INLINE Vec take(const float* from, size_t n) {
    return n == LANES ? load(from) : load_some(from, n);
}
INLINE void put(float* to, Vec v, size_t n) {
    n == LANES ? store(to, v) : store_some(to, v, n);
}

INLINE Vec tanh_slope(Vec y) {  // by its value
    return fill(1) - y * y;
}
INLINE Vec sigmoid_slope(Vec y) {
    return y * (fill(1) - y);
}

void rnn_forward(float* y_rth, const float* u_rh, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t r, size_t h, auto n) {
        float* y = y_rth + r * T * H + h;
        put(y, tanh(take(y, n) + take(u_rh + r * H + h, n)), n);
    });
}

void rnn_backward(float* da_rth, const float* dh_rh, const float* y_rth, const float* dy_rth, size_t R, size_t T,
                  size_t H) {
    each(R, H, [=](size_t r, size_t h, auto n) {
        const size_t at = r * T * H + h;
        const Vec dh = take(dh_rh + r * H + h, n) + take(dy_rth + at, n);
        put(da_rth + at, dh * tanh_slope(take(y_rth + at, n)), n);
    });
}

void lstm_forward(float* y_rth, float* cells_rth, float* gates_rtg, const float* u_rg, const float* before,
                  size_t before_row, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t r, size_t h, auto n) {
        float* gate = gates_rtg + r * T * 4 * H + h;
        const float* u = u_rg + r * 4 * H + h;
        const Vec i = sigmoid(take(gate, n) + take(u, n));
        const Vec f = sigmoid(take(gate + H, n) + take(u + H, n));
        const Vec g = tanh(take(gate + 2 * H, n) + take(u + 2 * H, n));
        const Vec o = sigmoid(take(gate + 3 * H, n) + take(u + 3 * H, n));
        const Vec c = fma(f, take(before + r * before_row + h, n), i * g);
        put(gate, i, n);
        put(gate + H, f, n);
        put(gate + 2 * H, g, n);
        put(gate + 3 * H, o, n);
        put(cells_rth + r * T * H + h, c, n);
        put(y_rth + r * T * H + h, o * tanh(c), n);
    });
}

void lstm_backward(float* da_rtg, float* dc_rh, const float* dh_rh, const float* gates_rtg, const float* cells_rth,
                   const float* before, size_t before_row, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t r, size_t h, auto n) {
        const float* gate = gates_rtg + r * T * 4 * H + h;
        const Vec i = take(gate, n), f = take(gate + H, n), g = take(gate + 2 * H, n), o = take(gate + 3 * H, n);
        const Vec t = tanh(take(cells_rth + r * T * H + h, n));
        const Vec dh = take(dh_rh + r * H + h, n) + take(dy_rth + r * T * H + h, n);
        const Vec dc = fma(dh * o, tanh_slope(t), take(dc_rh + r * H + h, n));
        float* da = da_rtg + r * T * 4 * H + h;
        put(da, dc * g * sigmoid_slope(i), n);
        put(da + H, dc * take(before + r * before_row + h, n) * sigmoid_slope(f), n);
        put(da + 2 * H, dc * i * tanh_slope(g), n);
        put(da + 3 * H, dh * t * sigmoid_slope(o), n);
        put(dc_rh + r * H + h, dc * f, n);
    });
}

void gru_reset(float* m_rh, float* gates_rtg, const float* u_rg, const float* before, size_t before_row, size_t R,
               size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        float* gate = gates_rtg + i * T * 3 * H + h;
        const float* u = u_rg + i * 2 * H + h;
        const Vec r = sigmoid(take(gate, n) + take(u, n)), z = sigmoid(take(gate + H, n) + take(u + H, n));
        put(gate, r, n);
        put(gate + H, z, n);
        put(m_rh + i * H + h, r * take(before + i * before_row + h, n), n);
    });
}

void gru_forward(float* y_rth, float* gates_rtg, const float* u_rh, const float* before, size_t before_row, size_t R,
                 size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        float* gate = gates_rtg + i * T * 3 * H + h;
        const Vec z = take(gate + H, n), old = take(before + i * before_row + h, n);
        const Vec candidate = tanh(take(gate + 2 * H, n) + take(u_rh + i * H + h, n));
        put(gate + 2 * H, candidate, n);
        put(y_rth + i * T * H + h, fma(z, candidate - old, old), n);
    });
}

void gru_backward(float* da_rtg, const float* dh_rh, const float* gates_rtg, const float* before, size_t before_row,
                  const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        const float* gate = gates_rtg + i * T * 3 * H + h;
        const Vec z = take(gate + H, n), candidate = take(gate + 2 * H, n);
        const Vec dh = take(dh_rh + i * H + h, n) + take(dy_rth + i * T * H + h, n);
        float* da = da_rtg + i * T * 3 * H + h;
        put(da + H, dh * (candidate - take(before + i * before_row + h, n)) * sigmoid_slope(z), n);
        put(da + 2 * H, dh * z * tanh_slope(candidate), n);
    });
}

void gru_reset_backward(float* da_rtg, float* dh_rh, const float* dm_rh, const float* gates_rtg, const float* before,
                        size_t before_row, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        const float* gate = gates_rtg + i * T * 3 * H + h;
        const Vec r = take(gate, n), z = take(gate + H, n), dm = take(dm_rh + i * H + h, n);
        const Vec dh = take(dh_rh + i * H + h, n) + take(dy_rth + i * T * H + h, n);
        put(da_rtg + i * T * 3 * H + h, dm * take(before + i * before_row + h, n) * sigmoid_slope(r), n);
        put(dh_rh + i * H + h, fma(dm, r, dh * (fill(1) - z)), n);
    });
}

void gru_after_forward(float* y_rth, float* gates_rtg, float* products_rth, const float* u_rg, const float* before,
                       size_t before_row, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        float* gate = gates_rtg + i * T * 3 * H + h;
        const float* u = u_rg + i * 3 * H + h;
        const Vec r = sigmoid(take(gate, n) + take(u, n)), z = sigmoid(take(gate + H, n) + take(u + H, n));
        const Vec product = take(u + 2 * H, n), old = take(before + i * before_row + h, n);
        const Vec candidate = tanh(fma(r, product, take(gate + 2 * H, n)));
        put(gate, r, n);
        put(gate + H, z, n);
        put(gate + 2 * H, candidate, n);
        put(products_rth + i * T * H + h, product, n);
        put(y_rth + i * T * H + h, fma(z, old - candidate, candidate), n);
    });
}

void gru_after_backward(float* da_rtg, float* dh_rh, const float* gates_rtg, const float* products_rth,
                        const float* before, size_t before_row, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        const float* gate = gates_rtg + i * T * 3 * H + h;
        const Vec r = take(gate, n), z = take(gate + H, n), candidate = take(gate + 2 * H, n);
        const Vec dh = take(dh_rh + i * H + h, n) + take(dy_rth + i * T * H + h, n);
        const Vec da_n = dh * (fill(1) - z) * tanh_slope(candidate);
        float* da = da_rtg + i * T * 4 * H + h;
        put(da, da_n * take(products_rth + i * T * H + h, n) * sigmoid_slope(r), n);
        put(da + H, dh * (take(before + i * before_row + h, n) - candidate) * sigmoid_slope(z), n);
        put(da + 2 * H, da_n, n);
        put(da + 3 * H, da_n * r, n);
        put(dh_rh + i * H + h, dh * z, n);
    });
}

}  // namespace

const Recurrent recurrent = {rnn_forward,  rnn_backward,       lstm_forward,      lstm_backward,     gru_reset, gru_forward,
                             gru_backward, gru_reset_backward, gru_after_forward, gru_after_backward};

}  // namespace chainrule::CHAINRULE_LEVEL
