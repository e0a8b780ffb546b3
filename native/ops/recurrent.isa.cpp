// A recurrent cell without its GEMM.        Derivation: docs/derivations/recurrent.md
#include "ops/recurrent.hpp"

#include "simd/map.hpp"
#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

// body(s, j, n): units j .. j + n of sequence s, n at most LANES.
template <class Body>
INLINE void each(size_t R, size_t H, Body body) {
    for (size_t s = 0; s < R; ++s) each_vector(H, [=](size_t j, auto n) { body(s, j, n); });
}

INLINE Vec tanh_slope(Vec y) {  // from y = tanh x, as sigmoid_slope from y = σ(x)
    return fill(1) - y * y;
}
INLINE Vec sigmoid_slope(Vec y) {
    return y * (fill(1) - y);
}

void rnn_forward(float* y_rth, const float* u_rh, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        float* y = y_rth + s * T * H + j;
        store_next(y, tanh(load_next(y, n) + load_next(u_rh + s * H + j, n)), n);  // [RC.1]
    });
}

void rnn_backward(float* da_rth, const float* dh_rh, const float* y_rth, const float* dy_rth, size_t R, size_t T,
                  size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        const size_t at = s * T * H + j;
        const Vec dh = load_next(dh_rh + s * H + j, n) + load_next(dy_rth + at, n);  // [RC.21]
        store_next(da_rth + at, dh * tanh_slope(load_next(y_rth + at, n)), n);       // forward was: y = tanh(a)  [RC.2]
    });
}

void lstm_forward(float* y_rth, float* cells_rth, float* gates_rtg, const float* u_rg, const float* c, size_t ldc,
                  size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        float* gate = gates_rtg + s * T * 4 * H + j;
        const float* u = u_rg + s * 4 * H + j;
        const Vec i = sigmoid(load_next(gate, n) + load_next(u, n));  // [RC.4]
        const Vec f = sigmoid(load_next(gate + H, n) + load_next(u + H, n));
        const Vec g = tanh(load_next(gate + 2 * H, n) + load_next(u + 2 * H, n));
        const Vec o = sigmoid(load_next(gate + 3 * H, n) + load_next(u + 3 * H, n));
        const Vec c_new = fma(f, load_next(c + s * ldc + j, n), i * g);  // [RC.5]
        store_next(gate, i, n);
        store_next(gate + H, f, n);
        store_next(gate + 2 * H, g, n);
        store_next(gate + 3 * H, o, n);
        store_next(cells_rth + s * T * H + j, c_new, n);
        store_next(y_rth + s * T * H + j, o * tanh(c_new), n);  // [RC.6]
    });
}

void lstm_backward(float* da_rtg, float* dc_rh, const float* dh_rh, const float* gates_rtg, const float* cells_rth,
                   const float* c, size_t ldc, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        const float* gate = gates_rtg + s * T * 4 * H + j;
        const Vec i = load_next(gate, n), f = load_next(gate + H, n);
        const Vec g = load_next(gate + 2 * H, n), o = load_next(gate + 3 * H, n);
        const Vec t = tanh(load_next(cells_rth + s * T * H + j, n));
        const Vec dh = load_next(dh_rh + s * H + j, n) + load_next(dy_rth + s * T * H + j, n);  // [RC.21]
        // forward was: h' = o tanh(c')                                                                           [RC.7]
        const Vec dc = fma(dh * o, tanh_slope(t), load_next(dc_rh + s * H + j, n));
        float* da = da_rtg + s * T * 4 * H + j;
        store_next(da, dc * g * sigmoid_slope(i), n);  // forward was: c' = f c + i g                             [RC.8]
        store_next(da + H, dc * load_next(c + s * ldc + j, n) * sigmoid_slope(f), n);
        store_next(da + 2 * H, dc * i * tanh_slope(g), n);
        store_next(da + 3 * H, dh * t * sigmoid_slope(o), n);
        store_next(dc_rh + s * H + j, dc * f, n);  // [RC.9]
    });
}

void gru_reset(float* m_rh, float* gates_rtg, const float* u_rg, const float* h, size_t ldh, size_t R, size_t T,
               size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        float* gate = gates_rtg + s * T * 3 * H + j;
        const float* u = u_rg + s * 2 * H + j;
        const Vec r = sigmoid(load_next(gate, n) + load_next(u, n));  // [RC.10]
        const Vec z = sigmoid(load_next(gate + H, n) + load_next(u + H, n));
        store_next(gate, r, n);
        store_next(gate + H, z, n);
        store_next(m_rh + s * H + j, r * load_next(h + s * ldh + j, n), n);
    });
}

void gru_forward(float* y_rth, float* gates_rtg, const float* u_rh, const float* h, size_t ldh, size_t R, size_t T,
                 size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        float* gate = gates_rtg + s * T * 3 * H + j;
        const Vec z = load_next(gate + H, n), old = load_next(h + s * ldh + j, n);
        const Vec candidate = tanh(load_next(gate + 2 * H, n) + load_next(u_rh + s * H + j, n));  // [RC.11]
        store_next(gate + 2 * H, candidate, n);
        store_next(y_rth + s * T * H + j, fma(z, candidate - old, old), n);  // [RC.12]
    });
}

void gru_backward(float* da_rtg, const float* dh_rh, const float* gates_rtg, const float* h, size_t ldh,
                  const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        const float* gate = gates_rtg + s * T * 3 * H + j;
        const Vec z = load_next(gate + H, n), candidate = load_next(gate + 2 * H, n);
        const Vec dh = load_next(dh_rh + s * H + j, n) + load_next(dy_rth + s * T * H + j, n);  // [RC.21]
        float* da = da_rtg + s * T * 3 * H + j;
        // forward was: h' = h + z (n - h)                                                                [RC.13] [RC.15]
        store_next(da + H, dh * (candidate - load_next(h + s * ldh + j, n)) * sigmoid_slope(z), n);
        store_next(da + 2 * H, dh * z * tanh_slope(candidate), n);
    });
}

void gru_reset_backward(float* da_rtg, float* dh_rh, const float* dm_rh, const float* gates_rtg, const float* h,
                        size_t ldh, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        const float* gate = gates_rtg + s * T * 3 * H + j;
        const Vec r = load_next(gate, n), z = load_next(gate + H, n), dm = load_next(dm_rh + s * H + j, n);
        const Vec dh = load_next(dh_rh + s * H + j, n) + load_next(dy_rth + s * T * H + j, n);
        // forward was: n = tanh(a_n + m W_nᵀ), m = r h                                                   [RC.14] [RC.15]
        store_next(da_rtg + s * T * 3 * H + j, dm * load_next(h + s * ldh + j, n) * sigmoid_slope(r), n);
        store_next(dh_rh + s * H + j, fma(dm, r, dh * (fill(1) - z)), n);  // [RC.16]
    });
}

void gru_after_forward(float* y_rth, float* gates_rtg, float* un_rth, const float* u_rg, const float* h, size_t ldh,
                       size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        float* gate = gates_rtg + s * T * 3 * H + j;
        const float* u = u_rg + s * 3 * H + j;
        const Vec r = sigmoid(load_next(gate, n) + load_next(u, n));  // [RC.17]
        const Vec z = sigmoid(load_next(gate + H, n) + load_next(u + H, n));
        const Vec u_n = load_next(u + 2 * H, n), old = load_next(h + s * ldh + j, n);
        const Vec candidate = tanh(fma(r, u_n, load_next(gate + 2 * H, n)));
        store_next(gate, r, n);
        store_next(gate + H, z, n);
        store_next(gate + 2 * H, candidate, n);
        store_next(un_rth + s * T * H + j, u_n, n);
        store_next(y_rth + s * T * H + j, fma(z, old - candidate, candidate), n);
    });
}

void gru_after_backward(float* da_rtg, float* dh_rh, const float* gates_rtg, const float* un_rth, const float* h,
                        size_t ldh, const float* dy_rth, size_t R, size_t T, size_t H) {
    each(R, H, [=](size_t s, size_t j, auto n) {
        const float* gate = gates_rtg + s * T * 3 * H + j;
        const Vec r = load_next(gate, n), z = load_next(gate + H, n), candidate = load_next(gate + 2 * H, n);
        const Vec dh = load_next(dh_rh + s * H + j, n) + load_next(dy_rth + s * T * H + j, n);  // [RC.21]
        const Vec da_n = dh * (fill(1) - z) * tanh_slope(candidate);
        float* da = da_rtg + s * T * 4 * H + j;
        // forward was: h' = n + z (h - n), n = tanh(a_n + r u_n)                                                [RC.18]
        store_next(da, da_n * load_next(un_rth + s * T * H + j, n) * sigmoid_slope(r), n);
        store_next(da + H, dh * (load_next(h + s * ldh + j, n) - candidate) * sigmoid_slope(z), n);
        store_next(da + 2 * H, da_n, n);
        store_next(da + 3 * H, da_n * r, n);  // [RC.19]
        store_next(dh_rh + s * H + j, dh * z, n);
    });
}

}  // namespace

const Recurrent recurrent = {
    rnn_forward, rnn_backward, lstm_forward,       lstm_backward,     gru_reset,
    gru_forward, gru_backward, gru_reset_backward, gru_after_forward, gru_after_backward,
};

}  // namespace chainrule::CHAINRULE_ISA
