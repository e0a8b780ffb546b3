#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

// One time step of R sequences: all of it but the GEMM with W_h, u = h W_hᵀ before a forward and dh = du W_h after a
// backward.
//
// A pointer whose name has a t stands at this step of the first sequence; the next sequence is T steps further on. `h`
// or `c` is the state before the step, its rows `ldh` or `ldc` apart. Gates lie side by side in a row: gates_rtg holds
// x W_xᵀ + b on entry and the gates on return; g stands for all of them.
struct Recurrent {
    // y_rth holds x W_xᵀ + b on entry.
    void (*rnn_forward)(float* y_rth, const float* u_rh, size_t R, size_t T, size_t H);
    void (*rnn_backward)(float* da_rth, const float* dh_rh, const float* y_rth, const float* dy_rth, size_t R, size_t T,
                         size_t H);

    void (*lstm_forward)(float* y_rth, float* cells_rth, float* gates_rtg, const float* u_rg, const float* c,
                         size_t ldc, size_t R, size_t T, size_t H);
    // dc_rh is the gradient of the cell after the step on entry, before the step on return.
    void (*lstm_backward)(float* da_rtg, float* dc_rh, const float* dh_rh, const float* gates_rtg,
                          const float* cells_rth, const float* c, size_t ldc, const float* dy_rth, size_t R, size_t T,
                          size_t H);

    // First r, z and m = r h, which the second GEMM needs; then n and the new state.
    void (*gru_reset)(float* m_rh, float* gates_rtg, const float* u_rg, const float* h, size_t ldh, size_t R, size_t T,
                      size_t H);
    void (*gru_forward)(float* y_rth, float* gates_rtg, const float* u_rh, const float* h, size_t ldh, size_t R,
                        size_t T, size_t H);
    // First da of z and n; then, with dm = da_n W_n, da of r. dh_rh is the gradient of the state after the step on
    // entry, before the step on return, except for the term (da_r, da_z) W_rz.
    void (*gru_backward)(float* da_rtg, const float* dh_rh, const float* gates_rtg, const float* h, size_t ldh,
                         const float* dy_rth, size_t R, size_t T, size_t H);
    void (*gru_reset_backward)(float* da_rtg, float* dh_rh, const float* dm_rh, const float* gates_rtg, const float* h,
                               size_t ldh, const float* dy_rth, size_t R, size_t T, size_t H);

    // PyTorch's cell: u_rg includes its bias, and u_n is saved. da_rtg has a fourth part, du_n. dh_rh as above, except
    // for the term du W_h.
    void (*gru_after_forward)(float* y_rth, float* gates_rtg, float* un_rth, const float* u_rg, const float* h,
                              size_t ldh, size_t R, size_t T, size_t H);
    void (*gru_after_backward)(float* da_rtg, float* dh_rh, const float* gates_rtg, const float* un_rth, const float* h,
                               size_t ldh, const float* dy_rth, size_t R, size_t T, size_t H);
};
CHAINRULE_KERNELS(Recurrent, recurrent)

// All T steps of B sequences. h_bh and c_bh are the first state. dh_bh and dc_bh hold the gradient of the last state on
// entry and of the first one on return.
void rnn_forward(float* y_bth, const float* h_bh, const float* w_hh, size_t B, size_t T, size_t H);
void rnn_backward(float* da_bth, float* dh_bh, const float* y_bth, const float* w_hh, const float* dy_bth, size_t B,
                  size_t T, size_t H);
void lstm_forward(float* y_bth, float* cells_bth, float* gates_btg, const float* h_bh, const float* c_bh,
                  const float* w_gh, size_t B, size_t T, size_t H);
void lstm_backward(float* da_btg, float* dh_bh, float* dc_bh, const float* gates_btg, const float* cells_bth,
                   const float* c_bh, const float* w_gh, const float* dy_bth, size_t B, size_t T, size_t H);
void gru_forward(float* y_bth, float* gates_btg, const float* h_bh, const float* w_gh, size_t B, size_t T, size_t H);
void gru_backward(float* da_btg, float* dh_bh, const float* gates_btg, const float* y_bth, const float* h_bh,
                  const float* w_gh, const float* dy_bth, size_t B, size_t T, size_t H);
void gru_after_forward(float* y_bth, float* gates_btg, float* un_bth, const float* h_bh, const float* w_gh,
                       const float* bias_g, size_t B, size_t T, size_t H);  // bias_g may be null
void gru_after_backward(float* da_btg, float* dh_bh, const float* gates_btg, const float* un_bth, const float* y_bth,
                        const float* h_bh, const float* w_gh, const float* dy_bth, size_t B, size_t T, size_t H);

}  // namespace chainrule
