// The loop over time. The rows of a batch do not meet in it, so each thread takes some rows through all steps, and no
// thread waits for another. How many rows go together changes no sum, so it may depend on the number of threads.
#include "ops/recurrent.hpp"

#include "bind/arrays.hpp"
#include "runtime/memory.hpp"

namespace chainrule {
namespace {

using Tensor3 = Array<float, 3>;
using ConstTensor3 = Array<const float, 3>;

// The right side B (K, N) of products with a few rows at a time, packed once for all steps.
class Weight {
public:
    Weight(View b_kn, size_t K, size_t N) : K_(K), N_(N), padded_(round_up(N)), packed_(K * padded_) {
        const size_t cols = gemm_kernels().tile_cols;
        for (size_t k = 0; k < K; k += DEEP) {
            const size_t depth = std::min(DEEP, K - k);
            for_row_blocks(N, depth, 4 * cols, [&](size_t, size_t n, size_t count) {
                const View part = {b_kn.data + k * b_kn.row + n * b_kn.col, b_kn.row, b_kn.col};
                gemm_kernels().pack_b(packed_.data() + k * padded_ + n * depth, gemm_kernels().tile_cols * depth, part, depth,
                                      count, Precision::fp32);
            });
        }
    }

    // c (R, N) = or += a (R, K) B + bias, on this thread.
    void multiply(float* c_rn, const float* a, size_t a_row, const float* bias_n, bool accumulate, size_t R) const {
        for (size_t k = 0; k < K_; k += DEEP)
            gemm_kernels().multiply(c_rn, N_, a + k, gemm_kernels().tile_rows * a_row, a_row, 1,
                                    packed_.data() + k * padded_, k == 0 ? bias_n : nullptr, accumulate || k > 0, R, N_,
                                    std::min(DEEP, K_ - k));
    }

private:
    static constexpr size_t DEEP = 256;  // what of B is at work takes half of the first cache

    static size_t round_up(size_t n) {
        const size_t cols = gemm_kernels().tile_cols;
        return (n + cols - 1) / cols * cols;
    }

    size_t K_, N_, padded_;
    Scratch packed_;
};

// body(first, count): a share of the batch for each thread, but not more rows than the second cache holds.
template <class Body>
void for_sequences(size_t B, Body&& body) {
    constexpr size_t MOST = 32;
    const size_t shares = std::max<size_t>((B + MOST - 1) / MOST, get_threads());
    const size_t rows = (B + shares - 1) / shares;
    if (B > 0) parallel_for((B + rows - 1) / rows, [&](size_t i) { body(i * rows, std::min(rows, B - i * rows)); });
}

// Where the state of each of the rows from b on was before step t: in `states` (B, T, H), at first in `start` (B, H).
struct Before {
    const float* data;
    size_t row;
    Before(const float* start_bh, const float* states_bth, size_t b, size_t t, size_t T, size_t H)
        : data(t == 0 ? start_bh + b * H : states_bth + (b * T + t - 1) * H), row(t == 0 ? H : T * H) {}
};

View transposed(const float* w_nk, size_t K) {
    return {w_nk, 1, K};
}

void rnn_forward(Tensor3 y, ConstMatrix h, ConstMatrix W) {
    const size_t B = y.shape(0), T = y.shape(1), H = y.shape(2);
    const float *h_bh = pointer(h, "h", B * H), *w_hh = pointer(W, "W", H * H);
    float* y_bth = y.data();

    WithoutGil release;
    const Weight weight(transposed(w_hh, H), H, H);
    for_sequences(B, [&](size_t b, size_t rows) {
        Scratch u(rows * H);
        for (size_t t = 0; t < T; ++t) {
            const Before before(h_bh, y_bth, b, t, T, H);
            weight.multiply(u.data(), before.data, before.row, nullptr, false, rows);
            recurrent().rnn_forward(y_bth + (b * T + t) * H, u.data(), rows, T, H);
        }
    });
}

// dh comes as the gradient of the last state and leaves as that of the first.
void rnn_backward(Tensor3 da, Matrix dh, ConstTensor3 y, ConstMatrix W, ConstTensor3 dy) {
    const size_t B = y.shape(0), T = y.shape(1), H = y.shape(2);
    float *da_bth = pointer(da, "da", B * T * H), *dh_bh = pointer(dh, "dh", B * H);
    const float *y_bth = y.data(), *w_hh = pointer(W, "W", H * H), *dy_bth = pointer(dy, "dy", B * T * H);

    WithoutGil release;
    const Weight weight({w_hh, H, 1}, H, H);
    for_sequences(B, [&](size_t b, size_t rows) {
        for (size_t t = T; t-- > 0;) {
            const size_t at = (b * T + t) * H;
            recurrent().rnn_backward(da_bth + at, dh_bh + b * H, y_bth + at, dy_bth + at, rows, T, H);
            weight.multiply(dh_bh + b * H, da_bth + at, T * H, nullptr, false, rows);
        }
    });
}

void lstm_forward(Tensor3 y, Tensor3 cells, Tensor3 gates, ConstMatrix h, ConstMatrix c, ConstMatrix W) {
    const size_t B = y.shape(0), T = y.shape(1), H = y.shape(2);
    float *cells_bth = pointer(cells, "cells", B * T * H), *gates_btg = pointer(gates, "gates", B * T * 4 * H);
    const float *h_bh = pointer(h, "h", B * H), *c_bh = pointer(c, "c", B * H), *w_gh = pointer(W, "W", 4 * H * H);
    float* y_bth = y.data();

    WithoutGil release;
    const Weight weight(transposed(w_gh, H), H, 4 * H);
    for_sequences(B, [&](size_t b, size_t rows) {
        Scratch u(rows * 4 * H);
        for (size_t t = 0; t < T; ++t) {
            const size_t at = b * T + t;
            const Before state(h_bh, y_bth, b, t, T, H), cell(c_bh, cells_bth, b, t, T, H);
            weight.multiply(u.data(), state.data, state.row, nullptr, false, rows);
            recurrent().lstm_forward(y_bth + at * H, cells_bth + at * H, gates_btg + at * 4 * H, u.data(), cell.data,
                                     cell.row, rows, T, H);
        }
    });
}

// dh and dc come as the gradients of the last state and leave as those of the first.
void lstm_backward(Tensor3 da, Matrix dh, Matrix dc, ConstTensor3 gates, ConstTensor3 cells, ConstMatrix c,
                   ConstMatrix W, ConstTensor3 dy) {
    const size_t B = cells.shape(0), T = cells.shape(1), H = cells.shape(2);
    float* da_btg = pointer(da, "da", B * T * 4 * H);
    float *dh_bh = pointer(dh, "dh", B * H), *dc_bh = pointer(dc, "dc", B * H);
    const float *gates_btg = pointer(gates, "gates", B * T * 4 * H), *cells_bth = cells.data();
    const float *c_bh = pointer(c, "c", B * H), *w_gh = pointer(W, "W", 4 * H * H);
    const float* dy_bth = pointer(dy, "dy", B * T * H);

    WithoutGil release;
    const Weight weight({w_gh, H, 1}, 4 * H, H);
    for_sequences(B, [&](size_t b, size_t rows) {
        for (size_t t = T; t-- > 0;) {
            const size_t at = b * T + t;
            const Before cell(c_bh, cells_bth, b, t, T, H);
            recurrent().lstm_backward(da_btg + at * 4 * H, dc_bh + b * H, dh_bh + b * H, gates_btg + at * 4 * H,
                                      cells_bth + at * H, cell.data, cell.row, dy_bth + at * H, rows, T, H);
            weight.multiply(dh_bh + b * H, da_btg + at * 4 * H, T * 4 * H, nullptr, false, rows);
        }
    });
}

void gru_forward(Tensor3 y, Tensor3 gates, ConstMatrix h, ConstMatrix W) {
    const size_t B = y.shape(0), T = y.shape(1), H = y.shape(2);
    float *y_bth = y.data(), *gates_btg = pointer(gates, "gates", B * T * 3 * H);
    const float *h_bh = pointer(h, "h", B * H), *w_gh = pointer(W, "W", 3 * H * H);

    WithoutGil release;
    const Weight weight_rz(transposed(w_gh, H), H, 2 * H), weight_n(transposed(w_gh + 2 * H * H, H), H, H);
    for_sequences(B, [&](size_t b, size_t rows) {
        Scratch u(rows * 2 * H), m(rows * H);
        for (size_t t = 0; t < T; ++t) {
            const size_t at = b * T + t;
            const Before before(h_bh, y_bth, b, t, T, H);
            float* gate = gates_btg + at * 3 * H;
            weight_rz.multiply(u.data(), before.data, before.row, nullptr, false, rows);
            recurrent().gru_reset(m.data(), gate, u.data(), before.data, before.row, rows, T, H);
            weight_n.multiply(u.data(), m.data(), H, nullptr, false, rows);
            recurrent().gru_forward(y_bth + at * H, gate, u.data(), before.data, before.row, rows, T, H);
        }
    });
}

// dh comes as the gradient of the last state and leaves as that of the first.
void gru_backward(Tensor3 da, Matrix dh, ConstTensor3 gates, ConstTensor3 y, ConstMatrix h, ConstMatrix W,
                  ConstTensor3 dy) {
    const size_t B = y.shape(0), T = y.shape(1), H = y.shape(2);
    float *da_btg = pointer(da, "da", B * T * 3 * H), *dh_bh = pointer(dh, "dh", B * H);
    const float *gates_btg = pointer(gates, "gates", B * T * 3 * H), *y_bth = y.data();
    const float *h_bh = pointer(h, "h", B * H), *w_gh = pointer(W, "W", 3 * H * H);
    const float* dy_bth = pointer(dy, "dy", B * T * H);

    WithoutGil release;
    const Weight weight_rz({w_gh, H, 1}, 2 * H, H), weight_n({w_gh + 2 * H * H, H, 1}, H, H);
    for_sequences(B, [&](size_t b, size_t rows) {
        Scratch dm(rows * H);
        for (size_t t = T; t-- > 0;) {
            const size_t at = b * T + t;
            const Before before(h_bh, y_bth, b, t, T, H);
            float *da_g = da_btg + at * 3 * H, *dh_h = dh_bh + b * H;
            const float* gate = gates_btg + at * 3 * H;
            recurrent().gru_backward(da_g, dh_h, gate, before.data, before.row, dy_bth + at * H, rows, T, H);
            weight_n.multiply(dm.data(), da_g + 2 * H, T * 3 * H, nullptr, false, rows);
            recurrent().gru_reset_backward(da_g, dh_h, dm.data(), gate, before.data, before.row, dy_bth + at * H, rows,
                                           T, H);
            weight_rz.multiply(dh_h, da_g, T * 3 * H, nullptr, true, rows);
        }
    });
}

void gru_after_forward(Tensor3 y, Tensor3 gates, Tensor3 products, ConstMatrix h, ConstMatrix W,
                       std::optional<ConstVector> bias) {
    const size_t B = y.shape(0), T = y.shape(1), H = y.shape(2);
    float *gates_btg = pointer(gates, "gates", B * T * 3 * H), *products_bth = pointer(products, "products", B * T * H);
    const float *h_bh = pointer(h, "h", B * H), *w_gh = pointer(W, "W", 3 * H * H);
    const float* bias_g = pointer_or_null(bias, "bias", 3 * H);
    float* y_bth = y.data();

    WithoutGil release;
    const Weight weight(transposed(w_gh, H), H, 3 * H);
    for_sequences(B, [&](size_t b, size_t rows) {
        Scratch u(rows * 3 * H);
        for (size_t t = 0; t < T; ++t) {
            const size_t at = b * T + t;
            const Before before(h_bh, y_bth, b, t, T, H);
            weight.multiply(u.data(), before.data, before.row, bias_g, false, rows);
            recurrent().gru_after_forward(y_bth + at * H, gates_btg + at * 3 * H, products_bth + at * H, u.data(),
                                          before.data, before.row, rows, T, H);
        }
    });
}

// dh comes as the gradient of the last state and leaves as that of the first. da is (B, T, 4H): r, z, n, and du_n.
void gru_after_backward(Tensor3 da, Matrix dh, ConstTensor3 gates, ConstTensor3 products, ConstTensor3 y, ConstMatrix h,
                        ConstMatrix W, ConstTensor3 dy) {
    const size_t B = y.shape(0), T = y.shape(1), H = y.shape(2);
    float *da_btg = pointer(da, "da", B * T * 4 * H), *dh_bh = pointer(dh, "dh", B * H);
    const float* gates_btg = pointer(gates, "gates", B * T * 3 * H);
    const float *products_bth = pointer(products, "products", B * T * H), *y_bth = y.data();
    const float *h_bh = pointer(h, "h", B * H), *w_gh = pointer(W, "W", 3 * H * H);
    const float* dy_bth = pointer(dy, "dy", B * T * H);

    WithoutGil release;
    const Weight weight_rz({w_gh, H, 1}, 2 * H, H), weight_n({w_gh + 2 * H * H, H, 1}, H, H);
    for_sequences(B, [&](size_t b, size_t rows) {
        for (size_t t = T; t-- > 0;) {
            const size_t at = b * T + t;
            const Before before(h_bh, y_bth, b, t, T, H);
            float *da_g = da_btg + at * 4 * H, *dh_h = dh_bh + b * H;
            recurrent().gru_after_backward(da_g, dh_h, gates_btg + at * 3 * H, products_bth + at * H, before.data,
                                           before.row, dy_bth + at * H, rows, T, H);
            weight_rz.multiply(dh_h, da_g, T * 4 * H, nullptr, true, rows);
            weight_n.multiply(dh_h, da_g + 3 * H, T * 4 * H, nullptr, true, rows);
        }
    });
}

}  // namespace

void bind_recurrent(nb::module_& m) {
    m.def("rnn_forward", &rnn_forward, "y"_a.noconvert(), "h"_a.noconvert(), "W"_a.noconvert());
    m.def("rnn_backward", &rnn_backward, "da"_a.noconvert(), "dh"_a.noconvert(), "y"_a.noconvert(), "W"_a.noconvert(),
          "dy"_a.noconvert());
    m.def("lstm_forward", &lstm_forward, "y"_a.noconvert(), "cells"_a.noconvert(), "gates"_a.noconvert(),
          "h"_a.noconvert(), "c"_a.noconvert(), "W"_a.noconvert());
    m.def("lstm_backward", &lstm_backward, "da"_a.noconvert(), "dh"_a.noconvert(), "dc"_a.noconvert(),
          "gates"_a.noconvert(), "cells"_a.noconvert(), "c"_a.noconvert(), "W"_a.noconvert(), "dy"_a.noconvert());
    m.def("gru_forward", &gru_forward, "y"_a.noconvert(), "gates"_a.noconvert(), "h"_a.noconvert(),
          "W"_a.noconvert());
    m.def("gru_backward", &gru_backward, "da"_a.noconvert(), "dh"_a.noconvert(), "gates"_a.noconvert(),
          "y"_a.noconvert(), "h"_a.noconvert(), "W"_a.noconvert(), "dy"_a.noconvert());
    m.def("gru_after_forward", &gru_after_forward, "y"_a.noconvert(), "gates"_a.noconvert(), "products"_a.noconvert(),
          "h"_a.noconvert(), "W"_a.noconvert(), "bias"_a.noconvert().none());
    m.def("gru_after_backward", &gru_after_backward, "da"_a.noconvert(), "dh"_a.noconvert(), "gates"_a.noconvert(),
          "products"_a.noconvert(), "y"_a.noconvert(), "h"_a.noconvert(), "W"_a.noconvert(), "dy"_a.noconvert());
}

}  // namespace chainrule
