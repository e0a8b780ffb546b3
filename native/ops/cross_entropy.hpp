#pragma once

#include <stdint.h>

#include "runtime/isa.hpp"

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

// The same of logits x_vr that stand in columns, for a vocabulary that is cut into blocks of V classes.
struct CrossEntropyColumns {
    // Of each column: its maximum, the sum of e^(x - maximum) and, if wanted, the sum of x.
    void (*reduce)(float* peak_r, float* total_r, float* sum_r, const float* x_vr, size_t V, size_t R);

    // Maxima and sums of B blocks, in their order, as one.
    void (*merge)(float* peak_r, float* total_r, const float* peak_br, const float* total_br, size_t B, size_t R);

    // slope_r (softmax(x) - floor) takes the place of x. What is still to come: -gap slope_r at the target.
    void (*gradients)(float* x_vr, const float* peak_r, const float* total_r, const float* slope_r, float floor,
                      size_t V, size_t R);
};
CHAINRULE_KERNELS(CrossEntropyColumns, cross_entropy_columns)

// The rows of CrossEntropy, on the pool.
void cross_entropy_losses(float* loss_r, float* peak_r, float* total_r, const float* x_rv, const int64_t* target_r,
                          const float* scale_r, float gap, float floor, size_t R, size_t V);
void cross_entropy_gradients(float* dx_rv, const float* peak_r, const float* total_r, const float* x_rv,
                             const int64_t* target_r, const float* scale_r, float gap, float floor, size_t R,
                             size_t V);

}  // namespace chainrule
