// Weight matrices as inference reads them: in panels of 32 outputs, one after the other, so that a product with a
// vector reads memory once and from front to back, whatever the format.
//
// A panel is a table of 32-bit words with a column for each output. A word holds one input's weight as fp32, two as
// bf16, four as int8 or eight as int4, consecutive inputs from the lowest bits up. In the integer formats each GROUP of
// inputs begins with the scales of the 32 outputs in bf16, output j in the lower and j + 16 in the upper half of word
// j; a code c stands for (c - 128) scale or (c - 8) scale. A scale has 8 significant bits, so this product is exact: a
// format is a way to store numbers, and the arithmetic is always that of float32.
//
// The number of inputs, K, is a multiple of GROUP here, and so are the rows of x: what is missing is zero.
#pragma once

#include <stdint.h>

#include "runtime/isa.hpp"

namespace chainrule {

constexpr size_t PANEL = 32, GROUP = 32;

enum class Format { fp32, bf16, int8, int4 };

// static, as everything inline that kernels share must be: see runtime/isa.hpp
static constexpr size_t panel_words(Format format, size_t K) {
    switch (format) {
        case Format::fp32: return K * PANEL;
        case Format::bf16: return K / 2 * PANEL;
        case Format::int8: return K / GROUP * (PANEL / 2 + GROUP / 4 * PANEL);
        default: return K / GROUP * (PANEL / 2 + GROUP / 8 * PANEL);
    }
}

struct Panels {
    // y (R, PANEL) = x panelᵀ. Each sum runs over k in order: a row's result depends on no other row, and is the same
    // for one row or many.
    void (*multiply)(float* y_rp, const float* x_rk, size_t ldx, const int32_t* panel, Format format, size_t R,
                     size_t K);

    // y (R, PANEL), rows ldy apart, += x b in the same order.
    void (*accumulate)(float* y_rp, size_t ldy, const float* x_rk, size_t ldx, const float* b_kp, size_t R, size_t K);

    // The weights of one output of a panel.
    void (*column)(float* w_k, const int32_t* panel, Format format, size_t output, size_t K);
};
CHAINRULE_KERNELS(Panels, panels)

}  // namespace chainrule
