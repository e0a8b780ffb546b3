#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Layernorm {
    void (*forward)(float* y_rc, float* mean_r, float* rstd_r, const float* x_rc, const float* gamma_c,
                    const float* beta_c, float eps, size_t R, size_t C);

    // dx_rc is assigned, dgamma_c and dbeta_c are added to; dx_rc, or the other two together, may be null.
    void (*backward)(float* dx_rc, float* dgamma_c, float* dbeta_c, const float* x_rc, const float* gamma_c,
                     const float* mean_r, const float* rstd_r, const float* dy_rc, size_t R, size_t C);
};
CHAINRULE_KERNELS(Layernorm, layernorm)

}  // namespace chainrule
