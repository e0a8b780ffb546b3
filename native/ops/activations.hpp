#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Activations {  // the forward pass of sigmoid and tanh is in simd/functions.hpp
    void (*sigmoid_backward)(float* dx_n, const float* y_n, const float* dy_n, size_t n);
    void (*tanh_backward)(float* dx_n, const float* y_n, const float* dy_n, size_t n);
    void (*relu_forward)(float* y_n, const float* x_n, size_t n);
    void (*relu_backward)(float* dx_n, const float* y_n, const float* dy_n, size_t n);
    void (*silu_forward)(float* y_n, const float* x_n, size_t n);
    void (*silu_backward)(float* dx_n, const float* x_n, const float* dy_n, size_t n);
    void (*swiglu_forward)(float* y_n, const float* gate_n, const float* up_n, size_t n);
    void (*swiglu_backward)(float* dgate_n, float* dup_n, const float* gate_n, const float* up_n, const float* dy_n,
                            size_t n);
};
CHAINRULE_KERNELS(Activations, activations)

}  // namespace chainrule
