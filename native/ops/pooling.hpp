#pragma once

#include <stdint.h>

#include "runtime/isa.hpp"

namespace chainrule {

// One text: rows x_tc, of which those with mask_t are tokens, at least one.
struct Pooling {
    // y_c = the mean of the tokens, or the last one
    void (*forward)(float* y_c, const float* x_tc, const uint8_t* mask_t, bool last, size_t T, size_t C);
    void (*backward)(float* dx_tc, const float* dy_c, const uint8_t* mask_t, bool last, size_t T, size_t C);
    // y_c = the largest of the tokens in each column; equal ones share its gradient
    void (*max_forward)(float* y_c, const float* x_tc, const uint8_t* mask_t, size_t T, size_t C);
    void (*max_backward)(float* dx_tc, const float* dy_c, const float* x_tc, const float* y_c, const uint8_t* mask_t,
                         size_t T, size_t C);
};
CHAINRULE_KERNELS(Pooling, pooling)

}  // namespace chainrule
