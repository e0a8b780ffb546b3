// Weight matrices for inference: packed into panels of 32 outputs, so that a matrix-vector product reads memory once,
// from front to back, in any format.
//
// A panel is a table of 32-bit words with a column for each output. A word holds one input's weight as fp32, two as
// bf16 or fp16, four as int8 or eight as int4, consecutive inputs from the lowest bits up. In the integer formats each GROUP of
// inputs begins with the scales of the 32 outputs in bf16, output j in the lower and j + 16 in the upper half of word
// j; a code c means (c - 128) scale or (c - 8) scale. A scale has 8 significant bits, so this product is exact: such a
// format only stores numbers, and the arithmetic is float32.
//
// The formats from q8_0 on hold GGUF's blocks of these names, of 32 inputs or, with a k, of 256: fp16 scales in the same
// places, then the leasts likewise if there are any, then in the column of an output the other bytes of its block, four in
// a word, as the file has them. (The fifth bits of q5_0 and q5_1 change places: input 4 i + b has bit i of byte b.) What
// they mean is said in decode/codes.hpp. Products are those of integers: see blocks.hpp.
//
// K, the number of inputs, is padded to a multiple of GROUP with zeros, and so are the rows of x.
#pragma once

#include <stdint.h>

#include "runtime/isa.hpp"

namespace chainrule {

constexpr size_t PANEL = 32, GROUP = 32;

enum class Format { fp32, bf16, fp16, int8, int4, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };
constexpr int FORMATS = 13;

// static, as every inline function of an .isa.cpp file must be: see runtime/isa.hpp
static constexpr bool in_blocks(Format format) { return format >= Format::q8_0; }
static constexpr size_t block_inputs(Format format) { return format >= Format::q4_k ? 256 : GROUP; }
static constexpr size_t block_halves(Format format) {  // in fp16: scale, and least
    return format == Format::q4_1 || format == Format::q5_1 || format == Format::q4_k || format == Format::q5_k ? 2 : 1;
}
static constexpr size_t block_bytes(Format format) {
    switch (format) {
        case Format::q8_0: return 2 + GROUP;
        case Format::q4_0: return 2 + GROUP / 2;
        case Format::q4_1: return 4 + GROUP / 2;
        case Format::q5_0: return 2 + GROUP / 8 + GROUP / 2;
        case Format::q5_1: return 4 + GROUP / 8 + GROUP / 2;
        case Format::q4_k: return 4 + 12 + 128;
        case Format::q5_k: return 4 + 12 + 32 + 128;
        default: return 128 + 64 + 16 + 2;
    }
}
static constexpr size_t panel_words(Format format, size_t K) {
    switch (format) {
        case Format::fp32: return K * PANEL;
        case Format::bf16:
        case Format::fp16: return K / 2 * PANEL;
        case Format::int8: return K / GROUP * (PANEL / 2 + GROUP / 4 * PANEL);
        case Format::int4: return K / GROUP * (PANEL / 2 + GROUP / 8 * PANEL);
        default: return K / block_inputs(format) * block_bytes(format) * PANEL / 4;
    }
}

// Weights are requested 2 KB before they are used: a CPU's own prefetching begins late and ends with each page.
template <size_t WORDS>
static inline void prefetch_ahead(const int32_t* words) {
    for (size_t w = 0; w < WORDS; w += 16) __builtin_prefetch(words + 512 + w);
}

static inline uint32_t nearest_bf16(float x) {  // its 16 bits; ties to even, NaN stays NaN
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return x != x ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

struct Panels {  // of formats that are not in blocks
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
