// Sixteen floats, in as many registers as the CPU level needs. Sixteen at every level, and no fused multiply-add
// (-ffp-contract=off), so every level adds the same numbers in the same order and gives the same bits.
#pragma once

#include <stddef.h>

namespace chainrule::CHAINRULE_LEVEL {
namespace {  // each level has its own definition of these names; they must not meet in the linker

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

struct Vec {
    Register part[PARTS];
};

inline Vec load(const float* from) {
    Vec v;
    for (size_t i = 0; i < PARTS; ++i) v.part[i] = *reinterpret_cast<const Memory*>(from + i * WIDTH);
    return v;
}

inline void store(float* to, Vec v) {
    for (size_t i = 0; i < PARTS; ++i) *reinterpret_cast<Memory*>(to + i * WIDTH) = v.part[i];
}

inline Vec fill(float value) {
    Vec v;
    for (size_t i = 0; i < PARTS; ++i) v.part[i] = Register{} + value;
    return v;
}

#define CHAINRULE_VEC_OPERATOR(op)                                              \
    inline Vec operator op(Vec a, Vec b) {                                      \
        for (size_t i = 0; i < PARTS; ++i) a.part[i] = a.part[i] op b.part[i];  \
        return a;                                                               \
    }
CHAINRULE_VEC_OPERATOR(+)
CHAINRULE_VEC_OPERATOR(-)
CHAINRULE_VEC_OPERATOR(*)
#undef CHAINRULE_VEC_OPERATOR

inline float sum(Vec v) {
    float lane[LANES];
    store(lane, v);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
    return lane[0];
}

}  // namespace
}  // namespace chainrule::CHAINRULE_LEVEL
