// One over the standard deviation, and when a mean must be computed again; shared by the norms. The functions are
// static, because each ISA compiles its own.
#pragma once

namespace chainrule {

// NaN for a row whose squares overflowed: a 0 would hide it behind finite outputs.
static inline float rstd_of(float var, float eps) {
    const float rstd = 1 / __builtin_sqrtf(var + eps);
    return rstd == 0 ? __builtin_nanf("") : rstd;
}

// A mean this large beside the spread carries a rounding error of the size of the spread: the values are centered, and
// what is left of their mean is added to it.
static inline bool mean_is_far(float mean, float var) { return mean * mean > 1e6f * var; }

}  // namespace chainrule
