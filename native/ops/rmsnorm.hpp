#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Rmsnorm {
    void (*forward)(float* y_rc, float* rstd_r, const float* x_rc, const float* gamma_c, float eps, size_t R, size_t C);

    // dx_rc is assigned, dgamma_c is added to; either may be null.
    void (*backward)(float* dx_rc, float* dgamma_c, const float* x_rc, const float* gamma_c, const float* rstd_r,
                     const float* dy_rc, size_t R, size_t C);
};
CHAINRULE_KERNELS(Rmsnorm, rmsnorm)

}  // namespace chainrule
