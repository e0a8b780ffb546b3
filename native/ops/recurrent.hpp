#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

// One step in time of R sequences, after the product u = h W_hᵀ of this step or before the one of the step before it.
//
// A pointer whose name has a t stands at this step of the first sequence; the next sequence is T steps further on.
// `before` is the state the step started from, its rows before_row apart. Gates lie side by side in a row: gates_rtg
// comes with x W_xᵀ + b in it and leaves with the gates; g stands for all of them.
struct Recurrent {
    // y_rth comes with x W_xᵀ + b in it.
    void (*rnn_forward)(float* y_rth, const float* u_rh, size_t R, size_t T, size_t H);
    void (*rnn_backward)(float* da_rth, const float* dh_rh, const float* y_rth, const float* dy_rth, size_t R, size_t T,
                         size_t H);

    void (*lstm_forward)(float* y_rth, float* cells_rth, float* gates_rtg, const float* u_rg, const float* before,
                         size_t before_row, size_t R, size_t T, size_t H);
    // dc_rh is that of the cell after the step and becomes that of the cell before it.
    void (*lstm_backward)(float* da_rtg, float* dc_rh, const float* dh_rh, const float* gates_rtg,
                          const float* cells_rth, const float* before, size_t before_row, const float* dy_rth, size_t R,
                          size_t T, size_t H);

    // r and z first, with m = r h for the next product; then n and the new state.
    void (*gru_reset)(float* m_rh, float* gates_rtg, const float* u_rg, const float* before, size_t before_row,
                      size_t R, size_t T, size_t H);
    void (*gru_forward)(float* y_rth, float* gates_rtg, const float* u_rh, const float* before, size_t before_row,
                        size_t R, size_t T, size_t H);
    // da of z and n first; then, with dm = da_n W_n, da of r. dh_rh is that of the state after the step and becomes
    // that of the state before it, but for the product with W_rz.
    void (*gru_backward)(float* da_rtg, const float* dh_rh, const float* gates_rtg, const float* before,
                         size_t before_row, const float* dy_rth, size_t R, size_t T, size_t H);
    void (*gru_reset_backward)(float* da_rtg, float* dh_rh, const float* dm_rh, const float* gates_rtg,
                               const float* before, size_t before_row, const float* dy_rth, size_t R, size_t T,
                               size_t H);

    // PyTorch's cell: u_rg has its bias in it, and its last part is kept in products_rth. da_rtg has a fourth part,
    // du_n. dh_rh as above, but for the product with all of W_h.
    void (*gru_after_forward)(float* y_rth, float* gates_rtg, float* products_rth, const float* u_rg,
                              const float* before, size_t before_row, size_t R, size_t T, size_t H);
    void (*gru_after_backward)(float* da_rtg, float* dh_rh, const float* gates_rtg, const float* products_rth,
                               const float* before, size_t before_row, const float* dy_rth, size_t R, size_t T,
                               size_t H);
};
CHAINRULE_KERNELS(Recurrent, recurrent)

}  // namespace chainrule
