// Products in integers of matrices in blocks, as files of GGUF have them: groups of 32 inputs that share a scale (of q6_k
// two scales, of 16 inputs each).
//
// The activations are rounded too, to 8 bits with a scale for each group. The sum over a group is one of integers, and so
// exact; it is scaled and added to the others in float32, in order, by a multiplication and an addition that round each on
// their own. A result is therefore the same, to the bit, on every ISA, and for one row or many.
#pragma once

#include "decode/panels.hpp"

namespace chainrule {

struct Rounded {  // a group of activations: scale · code
    int8_t code[GROUP];
    float scale;
    int16_t half[2];  // sums of the first 16 codes, and of the others
};
static inline int32_t sum_of(const Rounded& x) { return x.half[0] + x.half[1]; }
constexpr size_t ROUNDED_FLOATS = sizeof(Rounded) / sizeof(float);

struct Blocks {
    // scale = largest magnitude / 127; what is not finite makes the scale of its group so
    void (*round)(Rounded* x_g, const float* x_k, size_t K);

    // y (R, PANEL) = x panelᵀ; the rows of x are ldx groups apart.
    void (*multiply)(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* panel, Format format, size_t R,
                     size_t K);

    // The weights of one output of a panel.
    void (*column)(float* w_k, const int32_t* panel, Format format, size_t output, size_t K);
};
CHAINRULE_KERNELS(Blocks, blocks_of_isa)

#ifndef CHAINRULE_ISA
const Blocks& blocks();  // those of the ISA in use, or of the next lower one if the CPU lacks VPDPBUSD
#endif

}  // namespace chainrule
