// What a recurrent cell does beside its matrix product.        Derivation: docs/derivations/recurrent.md
#include "ops/recurrent.hpp"

#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
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

INLINE Vec tanh_slope(Vec y) {  // by its value
    return fill(1) - y * y;
}
INLINE Vec sigmoid_slope(Vec y) {
    return y * (fill(1) - y);
}

void rnn_forward(float* y_rth, const float* u_rh, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t r, size_t h, auto n) {
        float* y = y_rth + r * T * H + h;
        store_next(y, tanh(load_next(y, n) + load_next(u_rh + r * H + h, n)), n);
    });
}

void rnn_backward(float* da_rth, const float* dh_rh, const float* y_rth, const float* dy_rth, size_t R, size_t T,
                  size_t H) {
    each(R, H, [=](size_t r, size_t h, auto n) {
        const size_t at = r * T * H + h;
        const Vec dh = load_next(dh_rh + r * H + h, n) + load_next(dy_rth + at, n);
        store_next(da_rth + at, dh * tanh_slope(load_next(y_rth + at, n)), n);
    });
}

void lstm_forward(float* y_rth, float* cells_rth, float* gates_rtg, const float* u_rg, const float* before,
                  size_t before_row, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t r, size_t h, auto n) {
        float* gate = gates_rtg + r * T * 4 * H + h;
        const float* u = u_rg + r * 4 * H + h;
        const Vec i = sigmoid(load_next(gate, n) + load_next(u, n));
        const Vec f = sigmoid(load_next(gate + H, n) + load_next(u + H, n));
        const Vec g = tanh(load_next(gate + 2 * H, n) + load_next(u + 2 * H, n));
        const Vec o = sigmoid(load_next(gate + 3 * H, n) + load_next(u + 3 * H, n));
        const Vec c = fma(f, load_next(before + r * before_row + h, n), i * g);
        store_next(gate, i, n);
        store_next(gate + H, f, n);
        store_next(gate + 2 * H, g, n);
        store_next(gate + 3 * H, o, n);
        store_next(cells_rth + r * T * H + h, c, n);
        store_next(y_rth + r * T * H + h, o * tanh(c), n);
    });
}

void lstm_backward(float* da_rtg, float* dc_rh, const float* dh_rh, const float* gates_rtg, const float* cells_rth,
                   const float* before, size_t before_row, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t r, size_t h, auto n) {
        const float* gate = gates_rtg + r * T * 4 * H + h;
        const Vec i = load_next(gate, n), f = load_next(gate + H, n);
        const Vec g = load_next(gate + 2 * H, n), o = load_next(gate + 3 * H, n);
        const Vec t = tanh(load_next(cells_rth + r * T * H + h, n));
        const Vec dh = load_next(dh_rh + r * H + h, n) + load_next(dy_rth + r * T * H + h, n);
        const Vec dc = fma(dh * o, tanh_slope(t), load_next(dc_rh + r * H + h, n));
        float* da = da_rtg + r * T * 4 * H + h;
        store_next(da, dc * g * sigmoid_slope(i), n);
        store_next(da + H, dc * load_next(before + r * before_row + h, n) * sigmoid_slope(f), n);
        store_next(da + 2 * H, dc * i * tanh_slope(g), n);
        store_next(da + 3 * H, dh * t * sigmoid_slope(o), n);
        store_next(dc_rh + r * H + h, dc * f, n);
    });
}

void gru_reset(float* m_rh, float* gates_rtg, const float* u_rg, const float* before, size_t before_row, size_t R,
               size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        float* gate = gates_rtg + i * T * 3 * H + h;
        const float* u = u_rg + i * 2 * H + h;
        const Vec r = sigmoid(load_next(gate, n) + load_next(u, n));
        const Vec z = sigmoid(load_next(gate + H, n) + load_next(u + H, n));
        store_next(gate, r, n);
        store_next(gate + H, z, n);
        store_next(m_rh + i * H + h, r * load_next(before + i * before_row + h, n), n);
    });
}

void gru_forward(float* y_rth, float* gates_rtg, const float* u_rh, const float* before, size_t before_row, size_t R,
                 size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        float* gate = gates_rtg + i * T * 3 * H + h;
        const Vec z = load_next(gate + H, n), old = load_next(before + i * before_row + h, n);
        const Vec candidate = tanh(load_next(gate + 2 * H, n) + load_next(u_rh + i * H + h, n));
        store_next(gate + 2 * H, candidate, n);
        store_next(y_rth + i * T * H + h, fma(z, candidate - old, old), n);
    });
}

void gru_backward(float* da_rtg, const float* dh_rh, const float* gates_rtg, const float* before, size_t before_row,
                  const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        const float* gate = gates_rtg + i * T * 3 * H + h;
        const Vec z = load_next(gate + H, n), candidate = load_next(gate + 2 * H, n);
        const Vec dh = load_next(dh_rh + i * H + h, n) + load_next(dy_rth + i * T * H + h, n);
        float* da = da_rtg + i * T * 3 * H + h;
        store_next(da + H, dh * (candidate - load_next(before + i * before_row + h, n)) * sigmoid_slope(z), n);
        store_next(da + 2 * H, dh * z * tanh_slope(candidate), n);
    });
}

void gru_reset_backward(float* da_rtg, float* dh_rh, const float* dm_rh, const float* gates_rtg, const float* before,
                        size_t before_row, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        const float* gate = gates_rtg + i * T * 3 * H + h;
        const Vec r = load_next(gate, n), z = load_next(gate + H, n), dm = load_next(dm_rh + i * H + h, n);
        const Vec dh = load_next(dh_rh + i * H + h, n) + load_next(dy_rth + i * T * H + h, n);
        store_next(da_rtg + i * T * 3 * H + h, dm * load_next(before + i * before_row + h, n) * sigmoid_slope(r), n);
        store_next(dh_rh + i * H + h, fma(dm, r, dh * (fill(1) - z)), n);
    });
}

void gru_after_forward(float* y_rth, float* gates_rtg, float* products_rth, const float* u_rg, const float* before,
                       size_t before_row, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        float* gate = gates_rtg + i * T * 3 * H + h;
        const float* u = u_rg + i * 3 * H + h;
        const Vec r = sigmoid(load_next(gate, n) + load_next(u, n));
        const Vec z = sigmoid(load_next(gate + H, n) + load_next(u + H, n));
        const Vec product = load_next(u + 2 * H, n), old = load_next(before + i * before_row + h, n);
        const Vec candidate = tanh(fma(r, product, load_next(gate + 2 * H, n)));
        store_next(gate, r, n);
        store_next(gate + H, z, n);
        store_next(gate + 2 * H, candidate, n);
        store_next(products_rth + i * T * H + h, product, n);
        store_next(y_rth + i * T * H + h, fma(z, old - candidate, candidate), n);
    });
}

void gru_after_backward(float* da_rtg, float* dh_rh, const float* gates_rtg, const float* products_rth,
                        const float* before, size_t before_row, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t i, size_t h, auto n) {
        const float* gate = gates_rtg + i * T * 3 * H + h;
        const Vec r = load_next(gate, n), z = load_next(gate + H, n), candidate = load_next(gate + 2 * H, n);
        const Vec dh = load_next(dh_rh + i * H + h, n) + load_next(dy_rth + i * T * H + h, n);
        const Vec da_n = dh * (fill(1) - z) * tanh_slope(candidate);
        float* da = da_rtg + i * T * 4 * H + h;
        store_next(da, da_n * load_next(products_rth + i * T * H + h, n) * sigmoid_slope(r), n);
        store_next(da + H, dh * (load_next(before + i * before_row + h, n) - candidate) * sigmoid_slope(z), n);
        store_next(da + 2 * H, da_n, n);
        store_next(da + 3 * H, da_n * r, n);
        store_next(dh_rh + i * H + h, dh * z, n);
    });
}

}  // namespace

const Recurrent recurrent = {
    rnn_forward, rnn_backward, lstm_forward,       lstm_backward,     gru_reset,
    gru_forward, gru_backward, gru_reset_backward, gru_after_forward, gru_after_backward,
};

}  // namespace chainrule::CHAINRULE_ISA
