#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Softmax {
    void (*forward)(float* y_rc, const float* x_rc, size_t R, size_t C);
    void (*backward)(float* dx_rc, const float* y_rc, const float* dy_rc, size_t R, size_t C);
    void (*log_forward)(float* y_rc, const float* x_rc, size_t R, size_t C);
    void (*log_backward)(float* dx_rc, const float* y_rc, const float* dy_rc, size_t R, size_t C);
};
CHAINRULE_KERNELS(Softmax, softmax)

}  // namespace chainrule
