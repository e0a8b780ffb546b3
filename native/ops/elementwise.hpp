#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Elementwise {
    void (*add)(float* y_n, const float* a_n, const float* b_n, size_t n);
    void (*mul)(float* y_n, const float* a_n, const float* b_n, size_t n);
    void (*clear_large)(float* x_n, size_t n);  // x = 0, without a trace of it in the caches
};
CHAINRULE_KERNELS(Elementwise, elementwise)

}  // namespace chainrule
