// Numbers of 16 bits, two in each lane of a vector, as float32.
#pragma once

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

INLINE Vec lower_bf16(Int pair) { return from_bits(shift_left(pair, 16)); }
INLINE Vec upper_bf16(Int pair) { return from_bits(pair & fill_int(static_cast<int32_t>(0xffff0000))); }

// The bits of a finite fp16, moved to those of a float32, are that number times 2^-112.
INLINE Vec upper_fp16(Int pair) {
    const Vec size = from_bits(shift_right(pair & fill_int(0x7fff0000), 3)) * fill(0x1p112f);
    return from_bits(bits(size) | (pair & fill_int(static_cast<int32_t>(0x80000000))));
}
INLINE Vec lower_fp16(Int pair) { return upper_fp16(shift_left(pair, 16)); }

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
