#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct BatchnormKernels {
    // Sums over rows, added to the outputs.
    void (*squares)(float* total_c, const float* x_rc, const float* mean_c, size_t R, size_t C);
    void (*gradient_sums)(float* dgamma_c, float* dbeta_c, const float* x_rc, const float* mean_c, const float* rstd_c,
                          const float* dy_rc, size_t R, size_t C);

    // y = (x - mean) scale + beta
    void (*normalize)(float* y_rc, const float* x_rc, const float* mean_c, const float* scale_c, const float* beta_c,
                      size_t R, size_t C);
    // dx = dy scale - through_mean - (x - mean) through_var
    void (*input_gradient)(float* dx_rc, const float* x_rc, const float* mean_c, const float* dy_rc,
                           const float* scale_c, const float* through_mean_c, const float* through_var_c, size_t R,
                           size_t C);
    // running = keep running + add seen
    void (*update_running)(float* running_c, const float* seen_c, float keep, float add, size_t C);
};
CHAINRULE_KERNELS(BatchnormKernels, batchnorm)

// On the pool.
void batchnorm_forward(float* y_rc, float* mean_c, float* var_c, float* rstd_c, const float* x_rc, const float* gamma_c,
                       const float* beta_c, float eps, size_t R, size_t C);

// All are assigned; dx_rc may be null. dmean_c and dvar_c are the gradients of the statistics, which are outputs too.
void batchnorm_backward(float* dx_rc, float* dgamma_dbeta_2c, const float* x_rc, const float* gamma_c,
                        const float* mean_c, const float* rstd_c, const float* dy_rc, const float* dmean_c,
                        const float* dvar_c, size_t R, size_t C);

}  // namespace chainrule
