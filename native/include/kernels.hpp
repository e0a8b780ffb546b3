// The kernels, and the choice among the CPU levels they are compiled for.
//
// Argument order: outputs, saved values, inputs, constants, sizes. A pointer's name carries its indices: x_rc is a
// row-major (R, C) array. Parameter gradients accumulate, activation gradients are assigned. Kernels do not allocate
// or throw.
//
// Every file of kernels/ is compiled once per level into the namespace CHAINRULE_LEVEL. Such a file must not include
// a header with inline code: the linker keeps one copy of an inline function, and it could be the AVX-512 one.
#pragma once

#include <stddef.h>

namespace chainrule {

using LayernormForward = void(float* y_rc, float* mean_r, float* rstd_r,
                              const float* x_rc, const float* gamma_c, const float* beta_c,
                              float eps, size_t R, size_t C);

// dx_rc, or dgamma_c together with dbeta_c, may be null: that gradient is not computed.
using LayernormBackward = void(float* dx_rc, float* dgamma_c, float* dbeta_c,
                               const float* x_rc, const float* gamma_c, const float* mean_r, const float* rstd_r,
                               const float* dy_rc, size_t R, size_t C);

struct Kernels {
    LayernormForward* layernorm_forward;
    LayernormBackward* layernorm_backward;
};

#define CHAINRULE_DECLARE_LEVEL(level)           \
    namespace level {                            \
    LayernormForward layernorm_forward;          \
    LayernormBackward layernorm_backward;        \
    constexpr Kernels kernels = {                \
        layernorm_forward,                       \
        layernorm_backward,                      \
    };                                           \
    }
CHAINRULE_DECLARE_LEVEL(baseline)
CHAINRULE_DECLARE_LEVEL(avx2)
CHAINRULE_DECLARE_LEVEL(avx512)
#undef CHAINRULE_DECLARE_LEVEL

struct Level {
    const char* name;
    const Kernels* kernels;
    bool supported;  // by this CPU and its operating system
};

const Level* levels(size_t* count);      // those compiled in, lowest first
const Level& current_level();            // the highest supported one, unless another was chosen
bool set_level(const char* name);        // false if it is unknown or unsupported

}  // namespace chainrule
