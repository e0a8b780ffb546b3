#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Batchnorm {
    // Sums over rows are added to their first argument.
    void (*sums)(float* total_c, const float* x_rc, size_t R, size_t C);
    void (*squares)(float* total_c, const float* x_rc, const float* mean_c, size_t R, size_t C);
    void (*gradient_sums)(float* dgamma_c, float* dbeta_c, const float* x_rc, const float* mean_c, const float* rstd_c,
                          const float* dy_rc, size_t R, size_t C);

    void (*normalise)(float* y_rc, const float* x_rc, const float* mean_c, const float* scale_c, const float* beta_c,
                      size_t R, size_t C);
    // dx = dy scale - through_mean - (x - mean) through_var
    void (*input_gradient)(float* dx_rc, const float* x_rc, const float* mean_c, const float* dy_rc,
                           const float* scale_c, const float* through_mean_c, const float* through_var_c, size_t R,
                           size_t C);
};
CHAINRULE_KERNELS(Batchnorm, batchnorm)

}  // namespace chainrule
