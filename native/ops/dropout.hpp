#pragma once

#include "runtime/isa.hpp"
#include "runtime/philox.hpp"

namespace chainrule {

struct Dropout {
    // The elements first .. first + n of the whole array; `first` is a multiple of 16.
    void (*forward)(float* y_n, uint8_t* keep_n, const float* x_n, const KeepMask& mask, float scale, size_t first,
                    size_t n);
    void (*backward)(float* dx_n, const uint8_t* keep_n, const float* dy_n, float scale, size_t n);
};
CHAINRULE_KERNELS(Dropout, dropout)

}  // namespace chainrule
