// The register tile, inner loop of every GEMM: MR × NR elements of C stay in registers while the sum over k runs.
//
// AVX2 has 16 registers of 8 floats: 6 rows of 16 columns take 12 of them, a row of B takes 2, an element of A one.
// AVX-512 has 32 registers of 16 floats: 14 rows of 32 columns. Each k costs two loads of B and a broadcast of A for each
// row of the tile, against two fused multiply-adds for each of those rows: the arithmetic sets the pace, not the loads.
#pragma once

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr size_t MR = 14, NR_VECS = 2;
#elif defined(__AVX2__) || defined(__ARM_NEON)
constexpr size_t MR = 6, NR_VECS = 1;
#else
constexpr size_t MR = 2, NR_VECS = 1;
#endif
constexpr size_t NR = NR_VECS * LANES;

template <size_t ROWS, size_t VECS = NR_VECS>
struct Tile {
    Vec c[ROWS][VECS];
};

template <size_t ROWS, size_t VECS, class Body>  // body(row, column, vector)
INLINE void for_vectors(Tile<ROWS, VECS>& tile, Body body) {
#pragma GCC unroll 16
    for (size_t i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
        for (size_t v = 0; v < VECS; ++v) body(i, v * LANES, tile.c[i][v]);
}

template <size_t ROWS, size_t VECS>
INLINE void clear(Tile<ROWS, VECS>& tile) {
    for_vectors(tile, [](size_t, size_t, Vec& c) { c = fill(0); });
}

// A pointer of which the compiler knows nothing else: it keeps it in a register and advances it.
INLINE const float* kept(const float* pointer) {
    __asm__("" : "+r"(pointer));
    return pointer;
}

// tile += A B: A (ROWS, K) has element (i, k) at a[i a_row + k a_k]; B (K, VECS) has row k at b + k b_k.
// Each element is summed over k in order, whatever the tile: the result does not depend on ROWS. `term(a, b, c)` is
// what a step along k does with an element of A in all lanes and a vector of B, by default c + a b. Meanwhile the steps
// prefetch what comes `next`.
//
// Every third row of A has a pointer; the two after it are reached by the addressing modes of x86. A pointer for
// each row would not fit the registers: the loads of pointers from the stack then cost a tenth of the speed of Intel's
// cores, which begin four instructions per cycle.
using Term = Vec(Vec, Vec, Vec);

// What the steps along k prefetch into the L2 cache, a little with each: many requests at once would wait for each other.
struct Next {
    const float* b = nullptr;  // rows of the next panel of B (…, NR), b_k apart, one with each step
    size_t rows = 0;           // so many of them
    const float* a = nullptr;  // the next rows of A; null if they are in the cache already. A line with each step: of
    size_t a_row = 0;          // LANES rows, a_row apart, after another, and then
    ptrdiff_t a_back = 0;      // so many elements on, to the next line of the first of them
};

template <size_t ROWS, Term term = fma, size_t VECS>
INLINE void multiply(Tile<ROWS, VECS>& tile, const float* a, size_t a_row, size_t a_k, const float* b, size_t b_k, size_t K,
                     Next next = {}) {
    constexpr size_t GROUP = 3, GROUPS = (ROWS + GROUP - 1) / GROUP;
    Tile<ROWS, VECS> t = tile;  // a local copy, which the compiler keeps in registers
    const float* group[GROUPS];
#pragma GCC unroll 8
    for (size_t i = 0; i < GROUPS; ++i) group[i] = kept(a + i * GROUP * a_row);
    const auto step = [&]() __attribute__((always_inline)) {
        Vec row[VECS];
#pragma GCC unroll 4
        for (size_t v = 0; v < VECS; ++v) row[v] = load(b + v * LANES);
#pragma GCC unroll 16
        for (size_t i = 0; i < ROWS; ++i) {
            const Vec element = fill(group[i / GROUP][i % GROUP * a_row]);
#pragma GCC unroll 4
            for (size_t v = 0; v < VECS; ++v) t.c[i][v] = term(element, row[v], t.c[i][v]);
        }
        b += b_k;
#pragma GCC unroll 8
        for (size_t i = 0; i < GROUPS; ++i) group[i] = kept(group[i] + a_k);
    };
    const auto row_of_b = [&]() __attribute__((always_inline)) {
        for (size_t v = 0; v < NR_VECS; ++v) __builtin_prefetch(next.b + v * LANES, 0, 2);
        next.b += b_k;
    };
    const auto line_of_a = [&](size_t k) __attribute__((always_inline)) {
        __builtin_prefetch(next.a, 0, 2);
        next.a += k % LANES == LANES - 1 ? next.a_back : static_cast<ptrdiff_t>(next.a_row);
    };
    const size_t rows = next.rows < K ? next.rows : K;
    size_t k = 0;
    if (next.a) {
        for (; k < rows; ++k) row_of_b(), line_of_a(k), step();
        for (; k < K; ++k) line_of_a(k), step();
    }
    for (; k < rows; ++k) row_of_b(), step();
    for (; k < K; ++k) step();
    tile = t;
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
