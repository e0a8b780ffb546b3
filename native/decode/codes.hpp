// What the blocks of each format mean: codes, by groups of 32 inputs, and their scales.
//
//   q8_0   scale code             codes -128 to 127          q5_0   scale (code - 16)      codes 0 to 31
//   q4_0   scale (code - 8)       codes 0 to 15              q5_1   scale code + least
//   q4_1   scale code + least
//   q4_k   scale small code - least small'      eight groups, each with a scale and a least of six bits, codes 0 to 15
//   q5_k   the same                             codes 0 to 31
//   q6_k   scale small (code - 32)              sixteen inputs share a small scale of eight bits, codes 0 to 63
//
// A format gives the codes of inputs 4 i to 4 i + 3 of group g of a block, in the four bytes of each lane, for the outputs
// from v LANES on. ZERO is the code of 0, or with LEASTS that of the least weight; with HALVES each half of a group has a
// small scale, which multiplies its sum of integers.
#pragma once

#include "decode/halves.hpp"
#include "decode/panels.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

constexpr size_t FOURS = GROUP / 4;

template <Format format>
struct Block {
    static constexpr size_t WORDS = panel_words(format, block_inputs(format)), GROUPS = block_inputs(format) / GROUP;
    static constexpr bool WIDE = false, LEASTS = block_halves(format) == 2, HALVES = false;

    // Word n of each column
    static INLINE Int word(const int32_t* words, size_t v, size_t n) {
        return load_int(words + (block_halves(format) * PANEL / 2) + n * PANEL + v * LANES);
    }
    static INLINE Int bits_of(Int word, size_t shift, int32_t mask) {
        return shift_right(word, static_cast<int>(shift)) & fill_int(mask);
    }

    // fp16, output j in the lower and j + 16 in the upper half of word j
    static INLINE Vec half(const int32_t* words, size_t v) {
        const Int pair = load_int(words);
        return v ? upper_fp16(pair) : lower_fp16(pair);
    }
    static INLINE Vec scale(const int32_t* words, size_t, size_t v) { return half(words, v); }
    static INLINE Vec least(const int32_t* words, size_t, size_t v) { return half(words + PANEL / 2, v); }
    static INLINE Int small(const int32_t*, size_t, size_t, size_t) { return fill_int(1); }
};

template <int32_t OFFSET>  // added where codes must not be negative
struct Q8_0 : Block<Format::q8_0> {
    static constexpr bool WIDE = true;
    static constexpr int32_t ZERO = OFFSET;

    static INLINE Int codes(const int32_t* words, size_t, size_t v, size_t i) {
        const Int found = word(words, v, i);
        return OFFSET ? found ^ fill_int(static_cast<int32_t>(0x80808080)) : found;
    }
};

template <Format format>
struct Q4 : Block<format> {
    static constexpr int32_t ZERO = format == Format::q4_0 ? 8 : 0;

    static INLINE Int codes(const int32_t* words, size_t, size_t v, size_t i) {  // inputs from 16 on are in the upper halves
        return Q4::bits_of(Q4::word(words, v, i % (FOURS / 2)), i < FOURS / 2 ? 0 : 4, 0x0f0f0f0f);
    }
};

template <Format format>
struct Q5 : Block<format> {
    static constexpr int32_t ZERO = format == Format::q5_0 ? 16 : 0;

    static INLINE Int codes(const int32_t* words, size_t, size_t v, size_t i) {
        const Int lower = Q5::bits_of(Q5::word(words, v, 1 + i % (FOURS / 2)), i < FOURS / 2 ? 0 : 4, 0x0f0f0f0f);
        return lower | shift_left(Q5::bits_of(Q5::word(words, v, 0), i, 0x01010101), 4);
    }
};

template <Format format>
struct K : Block<format> {  // q4_k and q5_k
    static constexpr int32_t ZERO = 0;

    // Twelve bytes: the first four scales, then leasts, are the lower six bits of four bytes; the others take the two upper
    // bits of these and half a byte of the last four.
    template <size_t LEAST>
    static INLINE Vec six_bits(const int32_t* words, size_t g, size_t v) {
        const Int first = K::word(words, v, LEAST);
        if (g < 4) return to_float(K::bits_of(first, 8 * g, 63));
        const Int lower = K::bits_of(K::word(words, v, 2), 8 * (g - 4) + 4 * LEAST, 15);
        return to_float(lower | shift_left(K::bits_of(first, 8 * (g - 4) + 6, 3), 4));
    }
    static INLINE Vec scale(const int32_t* words, size_t g, size_t v) { return K::half(words, v) * six_bits<0>(words, g, v); }
    static INLINE Vec least(const int32_t* words, size_t g, size_t v) {
        return fill(0) - K::half(words + PANEL / 2, v) * six_bits<1>(words, g, v);
    }

    static INLINE Int codes(const int32_t* words, size_t g, size_t v, size_t i) {
        constexpr size_t fifth = format == Format::q5_k ? FOURS : 0;
        const Int lower = K::bits_of(K::word(words, v, 3 + fifth + g / 2 * FOURS + i), g % 2 * 4, 0x0f0f0f0f);
        if (!fifth) return lower;
        return lower | shift_left(K::bits_of(K::word(words, v, 3 + i), g, 0x01010101), 4);
    }
};

struct Q6_K : Block<Format::q6_k> {
    static constexpr bool HALVES = true;
    static constexpr int32_t ZERO = 32;

    static INLINE Int small(const int32_t* words, size_t g, size_t half, size_t v) {
        const Int byte = bits_of(word(words, v, 48 + g / 2), g % 2 * 16 + half * 8, 255);
        return (byte ^ fill_int(128)) - fill_int(128);  // signed
    }

    // Of each half of a block, four groups: 64 bytes of lower bits, two groups in each half byte, and 32 of upper bits
    static INLINE Int codes(const int32_t* words, size_t g, size_t v, size_t i) {
        const Int lower = word(words, v, g / 4 * 2 * FOURS + g % 2 * FOURS + i);
        const Int upper = word(words, v, 4 * FOURS + g / 4 * FOURS + i);
        return bits_of(lower, g % 4 / 2 * 4, 0x0f0f0f0f) | shift_left(bits_of(upper, g % 4 * 2, 0x03030303), 4);
    }
};

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
