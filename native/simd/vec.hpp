// A vector of sixteen floats, in as many registers as the ISA needs.
//
// Sixteen on every ISA, so that all of them add in the same order. fma() is fused where the CPU can (AVX2, AVX-512, ARM)
// and rounds twice on the x86 baseline; nothing else is ever contracted (-ffp-contract=off).
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>  // its functions are always inlined, so the linker sees no copy of them
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace chainrule::CHAINRULE_ISA {
namespace {  // each ISA has its own definitions, which the linker must not merge

#define INLINE inline __attribute__((always_inline))

constexpr size_t LANES = 16;
#if defined(__AVX512F__)
constexpr size_t WIDTH = 16;
#elif defined(__AVX2__)
constexpr size_t WIDTH = 8;
#else
constexpr size_t WIDTH = 4;
#endif
constexpr size_t PARTS = LANES / WIDTH;

typedef float Register __attribute__((vector_size(WIDTH * sizeof(float))));
typedef float Memory __attribute__((vector_size(WIDTH * sizeof(float)), aligned(alignof(float)), may_alias));
typedef int32_t IntRegister __attribute__((vector_size(WIDTH * sizeof(int32_t))));
typedef int32_t IntMemory __attribute__((vector_size(WIDTH * sizeof(int32_t)), aligned(alignof(int32_t)), may_alias));

struct Vec {
    Register part[PARTS];
};
struct Int {  // sixteen 32-bit integers, or a mask: -1 where true, 0 where false
    IntRegister part[PARTS];
};

#define CHAINRULE_EACH for (size_t i = 0; i < PARTS; ++i)

INLINE Vec load(const float* from) {
    Vec v;
    CHAINRULE_EACH v.part[i] = *reinterpret_cast<const Memory*>(from + i * WIDTH);
    return v;
}
INLINE void store(float* to, Vec v) {
    CHAINRULE_EACH *reinterpret_cast<Memory*>(to + i * WIDTH) = v.part[i];
}
// Past the caches, for arrays too large for them; `to` is 64-byte aligned. Ends with stream_fence().
INLINE void stream(float* to, Vec v) {
#if defined(__AVX512F__)
    _mm512_stream_ps(to, (__m512)v.part[0]);
#elif defined(__AVX2__)
    CHAINRULE_EACH _mm256_stream_ps(to + i * WIDTH, (__m256)v.part[i]);
#else
    store(to, v);
#endif
}
INLINE void stream_fence() {
#if defined(__AVX2__)
    _mm_sfence();
#endif
}
INLINE Vec fill(float value) {
    Vec v;
    CHAINRULE_EACH v.part[i] = value - Register{};  // x - 0 is x, also for -0: a plain broadcast
    return v;
}
INLINE Int fill_int(int32_t value) {
    Int v;
    CHAINRULE_EACH v.part[i] = IntRegister{} + value;
    return v;
}
INLINE Int load_int(const int32_t* from) {
    Int v;
    CHAINRULE_EACH v.part[i] = *reinterpret_cast<const IntMemory*>(from + i * WIDTH);
    return v;
}

// Booleans are bytes in memory, as in NumPy. Compilers turn the generic conversion into one per lane.
INLINE Int load_bools(const uint8_t* from) {  // 1 where true
    Int v;
#if defined(__AVX512F__)
    v.part[0] = (IntRegister)_mm512_maskz_cvtepu8_epi32(-1, _mm_loadu_si128((const __m128i*)from));
#elif defined(__AVX2__)
    CHAINRULE_EACH v.part[i] = (IntRegister)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(from + i * WIDTH)));
#else
    for (size_t i = 0; i < LANES; ++i) v.part[i / WIDTH][i % WIDTH] = from[i];
#endif
    return v;
}
INLINE void store_bools(uint8_t* to, Int mask) {
#if defined(__AVX512F__)
    _mm_storeu_si128((__m128i*)to, _mm512_maskz_cvtepi32_epi8(-1, (__m512i)(mask.part[0] & 1)));
#elif defined(__AVX2__)
    const __m256i halves = _mm256_packs_epi32((__m256i)mask.part[0], (__m256i)mask.part[1]);  // 16 bits, in quarters:
    const __m256i sorted = _mm256_permute4x64_epi64(halves, 0xd8);                            // 0 2 1 3
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(sorted), _mm256_extracti128_si256(sorted, 1));
    _mm_storeu_si128((__m128i*)to, _mm_and_si128(bytes, _mm_set1_epi8(1)));
#else
    for (size_t i = 0; i < LANES; ++i) to[i] = mask.part[i / WIDTH][i % WIDTH] & 1;
#endif
}

// The rest of a row, 0 < n < LANES: lanes beyond n get the value `other`; their memory is not touched.
INLINE Vec load_some(const float* from, size_t n, float other = 0) {
#if defined(__AVX512F__)
    Vec v = fill(other);
    v.part[0] = (Register)_mm512_mask_loadu_ps((__m512)v.part[0], (__mmask16)((1u << n) - 1), from);
    return v;
#elif defined(__AVX2__)
    Vec v = fill(other);
    CHAINRULE_EACH {
        const IntRegister place = {0, 1, 2, 3, 4, 5, 6, 7}, mask = place < static_cast<int32_t>(n) - int32_t(i * WIDTH);
        const Register found = _mm256_maskload_ps(from + i * WIDTH, reinterpret_cast<__m256i>(mask));
        v.part[i] = mask ? found : v.part[i];
    }
    return v;
#else
    float lane[LANES];
    for (size_t i = 0; i < LANES; ++i) lane[i] = other;
    for (size_t i = 0; i < n; ++i) lane[i] = from[i];
    return load(lane);
#endif
}
INLINE void store_some(float* to, Vec v, size_t n) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, (__mmask16)((1u << n) - 1), (__m512)v.part[0]);
#elif defined(__AVX2__)
    CHAINRULE_EACH {
        const IntRegister place = {0, 1, 2, 3, 4, 5, 6, 7}, mask = place < static_cast<int32_t>(n) - int32_t(i * WIDTH);
        _mm256_maskstore_ps(to + i * WIDTH, reinterpret_cast<__m256i>(mask), v.part[i]);
    }
#else
    float lane[LANES];
    store(lane, v);
    for (size_t i = 0; i < n; ++i) to[i] = lane[i];
#endif
}
// The next vector of a row that has n > 0 elements left: for loops of one body, `for (c = 0; c < C; c += LANES)`.
INLINE Vec load_next(const float* from, size_t n, float other = 0) {
    return n >= LANES ? load(from) : load_some(from, n, other);
}
INLINE void store_next(float* to, Vec v, size_t n) {
    if (n >= LANES)
        store(to, v);
    else
        store_some(to, v, n);
}

#define CHAINRULE_OPERATOR(Type, op)                                       \
    INLINE Type operator op(Type a, Type b) {                              \
        CHAINRULE_EACH a.part[i] = a.part[i] op b.part[i];                 \
        return a;                                                          \
    }
CHAINRULE_OPERATOR(Vec, +)
CHAINRULE_OPERATOR(Vec, -)
CHAINRULE_OPERATOR(Vec, *)
CHAINRULE_OPERATOR(Vec, /)
CHAINRULE_OPERATOR(Int, +)
CHAINRULE_OPERATOR(Int, -)
CHAINRULE_OPERATOR(Int, *)
CHAINRULE_OPERATOR(Int, &)
CHAINRULE_OPERATOR(Int, |)
CHAINRULE_OPERATOR(Int, ^)
#undef CHAINRULE_OPERATOR

#define CHAINRULE_COMPARE(op)                                              \
    INLINE Int operator op(Vec a, Vec b) {                                 \
        Int mask;                                                          \
        CHAINRULE_EACH mask.part[i] = a.part[i] op b.part[i];              \
        return mask;                                                       \
    }
CHAINRULE_COMPARE(<)
CHAINRULE_COMPARE(<=)
CHAINRULE_COMPARE(>)
CHAINRULE_COMPARE(>=)
CHAINRULE_COMPARE(==)
#undef CHAINRULE_COMPARE

INLINE Int operator>=(Int a, Int b) {
    CHAINRULE_EACH a.part[i] = a.part[i] >= b.part[i];
    return a;
}

INLINE Vec select(Int mask, Vec yes, Vec no) {
    CHAINRULE_EACH yes.part[i] = mask.part[i] ? yes.part[i] : no.part[i];
    return yes;
}
// b where either is NaN. Written as a comparison it would compile to two instructions.
INLINE Register max(Register a, Register b) {
#if defined(__AVX512F__)
    return _mm512_maskz_max_ps(-1, a, b);
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    return a > b ? a : b;
#endif
}
INLINE Register min(Register a, Register b) {
#if defined(__AVX512F__)
    return _mm512_maskz_min_ps(-1, a, b);
#elif defined(__AVX2__)
    return _mm256_min_ps(a, b);
#else
    return a < b ? a : b;
#endif
}
INLINE Vec max(Vec a, Vec b) {
    CHAINRULE_EACH a.part[i] = max(a.part[i], b.part[i]);
    return a;
}
INLINE Vec min(Vec a, Vec b) {
    CHAINRULE_EACH a.part[i] = min(a.part[i], b.part[i]);
    return a;
}

INLINE Register fma(Register a, Register b, Register c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__ARM_NEON)
    return vfmaq_f32(c, a, b);
#else
    return a * b + c;
#endif
}
INLINE Vec fma(Vec a, Vec b, Vec c) {  // a b + c
    CHAINRULE_EACH c.part[i] = fma(a.part[i], b.part[i], c.part[i]);
    return c;
}

INLINE Register sqrt(Register a) {
#if defined(__AVX512F__)
    return _mm512_maskz_sqrt_ps(0xffff, a);  // GCC 12 warns about the one without a mask
#elif defined(__AVX2__)
    return _mm256_sqrt_ps(a);
#else
    for (size_t i = 0; i < WIDTH; ++i) a[i] = __builtin_sqrtf(a[i]);
    return a;
#endif
}
INLINE Vec sqrt(Vec a) {
    CHAINRULE_EACH a.part[i] = sqrt(a.part[i]);
    return a;
}

INLINE Int bits(Vec a) {
    Int b;
    CHAINRULE_EACH b.part[i] = reinterpret_cast<IntRegister>(a.part[i]);
    return b;
}
INLINE Vec from_bits(Int a) {
    Vec b;
    CHAINRULE_EACH b.part[i] = reinterpret_cast<Register>(a.part[i]);
    return b;
}
INLINE Vec to_float(Int a) {
    Vec b;
    CHAINRULE_EACH b.part[i] = __builtin_convertvector(a.part[i], Register);
    return b;
}
INLINE Int shift_left(Int a, int count) {
    CHAINRULE_EACH a.part[i] = a.part[i] << count;
    return a;
}
INLINE Int shift_right(Int a, int count) {  // zeros come in from the left
    typedef uint32_t Unsigned __attribute__((vector_size(WIDTH * sizeof(uint32_t))));
    CHAINRULE_EACH a.part[i] = reinterpret_cast<IntRegister>(reinterpret_cast<Unsigned>(a.part[i]) >> count);
    return a;
}
INLINE Int halve(Int a) {  // rounded down
    CHAINRULE_EACH a.part[i] = a.part[i] >> 1;
    return a;
}
INLINE Vec abs(Vec a) {
    return from_bits(bits(a) & fill_int(0x7fffffff));
}

// Adds lane i and i + 8, then i and i + 4 and so on: the same order on every ISA.
typedef float Quad __attribute__((vector_size(4 * sizeof(float))));
INLINE float sum(Vec v) {
    Quad q[LANES / 4];
    __builtin_memcpy(q, &v, sizeof v);
    const Quad s = (q[0] + q[2]) + (q[1] + q[3]);
    return (s[0] + s[2]) + (s[1] + s[3]);
}
INLINE float largest(Vec v) {
    Quad q[LANES / 4];
    __builtin_memcpy(q, &v, sizeof v);
    const Quad even = q[0] > q[2] ? q[0] : q[2], odd = q[1] > q[3] ? q[1] : q[3];
    const Quad m = even > odd ? even : odd;
    const float first = m[0] > m[2] ? m[0] : m[2], second = m[1] > m[3] ? m[1] : m[3];
    return first > second ? first : second;
}

#undef CHAINRULE_EACH

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
