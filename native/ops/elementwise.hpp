#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

struct Elementwise {
    void (*add)(float* y_n, const float* a_n, const float* b_n, size_t n);
    void (*mul)(float* y_n, const float* a_n, const float* b_n, size_t n);
};
CHAINRULE_KERNELS(Elementwise, elementwise)

}  // namespace chainrule
