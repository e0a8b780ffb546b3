// The loop over time. The sequences of a batch are independent, so each thread takes some of them through all steps and
// never waits for another. How many go together changes no sum, so it may depend on the number of threads.
#include "ops/recurrent.hpp"

#include "gemm/gemm.hpp"
#include "runtime/memory.hpp"
#include "runtime/pool.hpp"

namespace chainrule {
namespace {

// The right side B (K, N) of GEMMs with a few rows each, packed once for all steps.
class Weight {
public:
    Weight(View b_kn, size_t K, size_t N) : K_(K), N_(N), padded_(round_up(N)), packed_(K * padded_) {
        const size_t NR = gemm_kernels().NR;
        for (size_t k = 0; k < K; k += KC) {
            const size_t depth = std::min(KC, K - k);
            for_row_blocks(N, depth, 4 * NR, [&](size_t, size_t n, size_t count) {
                const View part = {b_kn.data + k * b_kn.row + n * b_kn.col, b_kn.row, b_kn.col};
                gemm_kernels().pack_b(packed_.data() + k * padded_ + n * depth, NR * depth, part, depth, count,
                                      Precision::fp32);
            });
        }
    }

    // c (R, N) = or += a (R, K) B + bias, on this thread. The rows of a are whole sequences apart, often a power of two.
    void multiply(float* c_rn, const float* a_rk, size_t lda, size_t R, bool accumulate = false,
                  const float* bias_n = nullptr) const {
        const bool spread = R > 1 && share_cache_sets(lda);
        const Scratch moved(spread ? R * spread_row(K_) : 0);
        const View a = spread ? spread_rows(moved.data(), {a_rk, lda, 1}, R, K_) : View{a_rk, lda, 1};
        const size_t MR = gemm_kernels().MR, NR = gemm_kernels().NR;
        for (size_t k = 0; k < K_; k += KC) {
            const size_t depth = std::min(KC, K_ - k);
            gemm_kernels().macrokernel(c_rn, N_, {a.data + k, MR * a.row, a.row, 1},
                                       {packed_.data() + k * padded_, NR * depth, 1, NR}, k == 0 ? bias_n : nullptr,
                                       accumulate || k > 0, R, N_, depth);
        }
    }

private:
    static constexpr size_t KC = 256;  // a panel of B then fills half of the L1 cache

    static size_t round_up(size_t n) {
        const size_t NR = gemm_kernels().NR;
        return (n + NR - 1) / NR * NR;
    }

    size_t K_, N_, padded_;
    Scratch packed_;
};

View transposed(const float* w_nk, size_t K) {
    return {w_nk, 1, K};
}

// body(first sequence, count): an equal part of the batch for each thread, at most what the L2 cache holds.
template <class Body>
void for_sequences(size_t B, Body&& body) {
    constexpr size_t MOST = 32;
    const size_t parts = std::max<size_t>((B + MOST - 1) / MOST, get_threads());
    const size_t count = (B + parts - 1) / parts;
    if (B > 0) parallel_for((B + count - 1) / count, [&](size_t i) { body(i * count, std::min(count, B - i * count)); });
}

// The states before step t of the sequences from b on: in states_bth, at t = 0 in first_bh. Rows are `ld` apart.
struct Before {
    const float* data;
    size_t ld;
    Before(const float* first_bh, const float* states_bth, size_t b, size_t t, size_t T, size_t H)
        : data(t == 0 ? first_bh + b * H : states_bth + (b * T + t - 1) * H), ld(t == 0 ? H : T * H) {}
};

}  // namespace

void rnn_forward(float* y_bth, const float* h_bh, const float* w_hh, size_t B, size_t T, size_t H) {
    const Weight weight(transposed(w_hh, H), H, H);
    for_sequences(B, [&](size_t b, size_t R) {
        Scratch u(R * H);
        for (size_t t = 0; t < T; ++t) {
            const Before h(h_bh, y_bth, b, t, T, H);
            weight.multiply(u.data(), h.data, h.ld, R);
            recurrent().rnn_forward(y_bth + (b * T + t) * H, u.data(), R, T, H);
        }
    });
}

void rnn_backward(float* da_bth, float* dh_bh, const float* y_bth, const float* w_hh, const float* dy_bth, size_t B,
                  size_t T, size_t H) {
    const Weight weight({w_hh, H, 1}, H, H);
    for_sequences(B, [&](size_t b, size_t R) {
        for (size_t t = T; t-- > 0;) {
            const size_t at = (b * T + t) * H;
            recurrent().rnn_backward(da_bth + at, dh_bh + b * H, y_bth + at, dy_bth + at, R, T, H);
            weight.multiply(dh_bh + b * H, da_bth + at, T * H, R);  // [RC.3]
        }
    });
}

void lstm_forward(float* y_bth, float* cells_bth, float* gates_btg, const float* h_bh, const float* c_bh,
                  const float* w_gh, size_t B, size_t T, size_t H) {
    const Weight weight(transposed(w_gh, H), H, 4 * H);
    for_sequences(B, [&](size_t b, size_t R) {
        Scratch u(R * 4 * H);
        for (size_t t = 0; t < T; ++t) {
            const size_t at = b * T + t;
            const Before h(h_bh, y_bth, b, t, T, H), c(c_bh, cells_bth, b, t, T, H);
            weight.multiply(u.data(), h.data, h.ld, R);
            recurrent().lstm_forward(y_bth + at * H, cells_bth + at * H, gates_btg + at * 4 * H, u.data(), c.data, c.ld,
                                     R, T, H);
        }
    });
}

void lstm_backward(float* da_btg, float* dh_bh, float* dc_bh, const float* gates_btg, const float* cells_bth,
                   const float* c_bh, const float* w_gh, const float* dy_bth, size_t B, size_t T, size_t H) {
    const Weight weight({w_gh, H, 1}, 4 * H, H);
    for_sequences(B, [&](size_t b, size_t R) {
        for (size_t t = T; t-- > 0;) {
            const size_t at = b * T + t;
            const Before c(c_bh, cells_bth, b, t, T, H);
            recurrent().lstm_backward(da_btg + at * 4 * H, dc_bh + b * H, dh_bh + b * H, gates_btg + at * 4 * H,
                                      cells_bth + at * H, c.data, c.ld, dy_bth + at * H, R, T, H);
            weight.multiply(dh_bh + b * H, da_btg + at * 4 * H, T * 4 * H, R);  // [RC.3]
        }
    });
}

void gru_forward(float* y_bth, float* gates_btg, const float* h_bh, const float* w_gh, size_t B, size_t T, size_t H) {
    const Weight weight_rz(transposed(w_gh, H), H, 2 * H), weight_n(transposed(w_gh + 2 * H * H, H), H, H);
    for_sequences(B, [&](size_t b, size_t R) {
        Scratch u(R * 2 * H), m(R * H);
        for (size_t t = 0; t < T; ++t) {
            const size_t at = b * T + t;
            const Before h(h_bh, y_bth, b, t, T, H);
            float* gates = gates_btg + at * 3 * H;
            weight_rz.multiply(u.data(), h.data, h.ld, R);
            recurrent().gru_reset(m.data(), gates, u.data(), h.data, h.ld, R, T, H);
            weight_n.multiply(u.data(), m.data(), H, R);
            recurrent().gru_forward(y_bth + at * H, gates, u.data(), h.data, h.ld, R, T, H);
        }
    });
}

void gru_backward(float* da_btg, float* dh_bh, const float* gates_btg, const float* y_bth, const float* h_bh,
                  const float* w_gh, const float* dy_bth, size_t B, size_t T, size_t H) {
    const Weight weight_rz({w_gh, H, 1}, 2 * H, H), weight_n({w_gh + 2 * H * H, H, 1}, H, H);
    for_sequences(B, [&](size_t b, size_t R) {
        Scratch dm(R * H);
        for (size_t t = T; t-- > 0;) {
            const size_t at = b * T + t;
            const Before h(h_bh, y_bth, b, t, T, H);
            float *da = da_btg + at * 3 * H, *dh = dh_bh + b * H;
            const float *gates = gates_btg + at * 3 * H, *dy = dy_bth + at * H;
            recurrent().gru_backward(da, dh, gates, h.data, h.ld, dy, R, T, H);
            weight_n.multiply(dm.data(), da + 2 * H, T * 3 * H, R);  // [RC.14]
            recurrent().gru_reset_backward(da, dh, dm.data(), gates, h.data, h.ld, dy, R, T, H);
            weight_rz.multiply(dh, da, T * 3 * H, R, true);  // [RC.16]
        }
    });
}

void gru_after_forward(float* y_bth, float* gates_btg, float* un_bth, const float* h_bh, const float* w_gh,
                       const float* bias_g, size_t B, size_t T, size_t H) {
    const Weight weight(transposed(w_gh, H), H, 3 * H);
    for_sequences(B, [&](size_t b, size_t R) {
        Scratch u(R * 3 * H);
        for (size_t t = 0; t < T; ++t) {
            const size_t at = b * T + t;
            const Before h(h_bh, y_bth, b, t, T, H);
            weight.multiply(u.data(), h.data, h.ld, R, false, bias_g);
            recurrent().gru_after_forward(y_bth + at * H, gates_btg + at * 3 * H, un_bth + at * H, u.data(), h.data,
                                          h.ld, R, T, H);
        }
    });
}

void gru_after_backward(float* da_btg, float* dh_bh, const float* gates_btg, const float* un_bth, const float* y_bth,
                        const float* h_bh, const float* w_gh, const float* dy_bth, size_t B, size_t T, size_t H) {
    const Weight weight_rz({w_gh, H, 1}, 2 * H, H), weight_n({w_gh + 2 * H * H, H, 1}, H, H);
    for_sequences(B, [&](size_t b, size_t R) {
        for (size_t t = T; t-- > 0;) {
            const size_t at = b * T + t;
            const Before h(h_bh, y_bth, b, t, T, H);
            float *da = da_btg + at * 4 * H, *dh = dh_bh + b * H;
            recurrent().gru_after_backward(da, dh, gates_btg + at * 3 * H, un_bth + at * H, h.data, h.ld,
                                           dy_bth + at * H, R, T, H);
            weight_rz.multiply(dh, da, T * 4 * H, R, true);  // [RC.19]
            weight_n.multiply(dh, da + 3 * H, T * 4 * H, R, true);
        }
    });
}

}  // namespace chainrule
