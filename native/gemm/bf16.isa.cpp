// GEMM of bf16 two terms at a time: a word holds the terms k and k + 1 of a row or column, the even one in its low half.
// VDPBF16PS (AVX-512 BF16) multiplies and adds both in one instruction. It is not part of the avx512 ISA here: whether
// the CPU has it is tested at run time (runtime/isa.hpp). Elsewhere two fused multiply-adds give the same sum, so that
// the packing can be tested on any CPU.
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512bf16")  // before any header, so that all of this file is compiled alike
#define HAS_VDPBF16PS             // GCC 12 does not set its own macro
#endif
#include "gemm/gemm.hpp"

#include "gemm/macrokernel.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

#if defined(HAS_VDPBF16PS)
INLINE Vec two_terms(Vec a, Vec b, Vec c) {
    Vec sum;
    sum.part[0] = (Register)_mm512_dpbf16_ps((__m512)c.part[0], (__m512bh)a.part[0], (__m512bh)b.part[0]);
    return sum;
}
#else
INLINE Vec even(Vec words) { return from_bits(shift_left(bits(words), 16)); }
INLINE Vec odd(Vec words) { return from_bits(bits(words) & fill_int(-0x10000)); }
INLINE Vec two_terms(Vec a, Vec b, Vec c) { return fma(even(a), even(b), fma(odd(a), odd(b), c)); }
#endif

}  // namespace

const Bf16Pairs bf16_pairs = {macrokernel<two_terms>};

}  // namespace chainrule::CHAINRULE_ISA
