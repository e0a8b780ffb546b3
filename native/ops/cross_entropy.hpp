#pragma once

#include <stdint.h>

#include "runtime/isa.hpp"

namespace chainrule {

// The target distribution of row r is gap · onehot(target_r[r]) + floor [CE.3]. A row with scale 0 gives 0, even if it
// holds NaN. peak_r and total_r are the maximum of a row and its sum of e^(x - peak).
struct CrossEntropy {
    void (*forward)(float* loss_r, float* peak_r, float* total_r, const float* x_rv, const int64_t* target_r,
                    const float* scale_r, float gap, float floor, size_t R, size_t V);

    // dx_rv may be x_rv itself.
    void (*backward)(float* dx_rv, const float* x_rv, const float* peak_r, const float* total_r,
                     const int64_t* target_r, const float* scale_r, float gap, float floor, size_t R, size_t V);
};
CHAINRULE_KERNELS(CrossEntropy, cross_entropy)

}  // namespace chainrule
