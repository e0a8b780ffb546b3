// The functions of vecmath.hpp over arrays: forward passes of sigmoid and tanh, and for tests of their errors.
#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Functions {
    void (*exp)(float* y_n, const float* x_n, size_t n);
    void (*tanh)(float* y_n, const float* x_n, size_t n);
    void (*sigmoid)(float* y_n, const float* x_n, size_t n);
    void (*normal_cdf)(float* y_n, const float* x_n, size_t n);
};
CHAINRULE_KERNELS(Functions, functions)

}  // namespace chainrule
