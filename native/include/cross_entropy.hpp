#pragma once

#include <stdint.h>

#include "levels.hpp"

namespace chainrule {

// The target distribution of row r is gap · onehot(target_r[r]) + floor. A row with scale 0 gives 0, whatever it holds.
struct CrossEntropy {
    void (*forward)(float* loss_r, float* peak_r, float* total_r, const float* x_rv, const int64_t* target_r,
                    const float* scale_r, float gap, float floor, size_t R, size_t V);

    // dx_rv may be x_rv itself.
    void (*backward)(float* dx_rv, const float* peak_r, const float* total_r, const float* x_rv,
                     const int64_t* target_r, const float* scale_r, float gap, float floor, size_t R, size_t V);
};
CHAINRULE_KERNELS(CrossEntropy, cross_entropy)

// The same over all rows, on the pool.
void cross_entropy_losses(float* loss_r, float* peak_r, float* total_r, const float* x_rv, const int64_t* target_r,
                          const float* scale_r, float gap, float floor, size_t R, size_t V);
void cross_entropy_gradients(float* dx_rv, const float* peak_r, const float* total_r, const float* x_rv,
                             const int64_t* target_r, const float* scale_r, float gap, float floor, size_t R,
                             size_t V);

}  // namespace chainrule
