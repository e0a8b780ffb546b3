#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Gelu {
    void (*forward)(float* y_n, const float* x_n, size_t n);
    void (*backward)(float* dx_n, const float* x_n, const float* dy_n, size_t n);
    void (*tanh_forward)(float* y_n, const float* x_n, size_t n);
    void (*tanh_backward)(float* dx_n, const float* x_n, const float* dy_n, size_t n);
};
CHAINRULE_KERNELS(Gelu, gelu)

}  // namespace chainrule
