// The heart of every matrix product: a tile of C that stays in registers while the sum over k runs.
//
// AVX2 has 16 registers of 8 floats: 6 rows of 16 columns are 12 of them, a row of B is 2 and one holds an element of A.
// AVX-512 has 32 of 16: 14 rows of 32 columns. Each k costs a row of B (2 loads) and a broadcast of A for
// each row of the tile, against two fused multiply-adds for each of those: the arithmetic, not the loads, sets the pace.
#pragma once

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

#if defined(__AVX512F__)
constexpr size_t TILE_ROWS = 14, TILE_VECS = 2;
#elif defined(__AVX2__) || defined(__ARM_NEON)
constexpr size_t TILE_ROWS = 6, TILE_VECS = 1;
#else
constexpr size_t TILE_ROWS = 2, TILE_VECS = 1;
#endif
constexpr size_t TILE_COLS = TILE_VECS * LANES;

template <size_t ROWS>
struct Tile {
    Vec c[ROWS][TILE_VECS];
};

template <size_t ROWS, class Body>  // body(row, column, vector)
INLINE void for_vectors(Tile<ROWS>& tile, Body body) {
#pragma GCC unroll 16
    for (size_t i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
        for (size_t v = 0; v < TILE_VECS; ++v) body(i, v * LANES, tile.c[i][v]);
}

template <size_t ROWS>
INLINE void clear(Tile<ROWS>& tile) {
    for_vectors(tile, [](size_t, size_t, Vec& c) { c = fill(0); });
}

// tile += A B: A (ROWS, K) has element (i, k) at a[i a_row + k a_k]; B (K, TILE_COLS) has row k at b + k b_k.
// Each element is summed over k in order, whatever the tile: the result does not depend on ROWS. `term(a, b, c)` is
// what a step along k does with an element of A in all lanes and a vector of B: c + a b unless said otherwise.
using Term = Vec(Vec, Vec, Vec);

template <size_t ROWS, Term term = fma>
INLINE void multiply(Tile<ROWS>& tile, const float* a, size_t a_row, size_t a_k, const float* b, size_t b_k, size_t K) {
    Tile<ROWS> t = tile;  // a local copy, which the compiler can keep in registers
    for (size_t k = 0; k < K; ++k) {
        Vec row[TILE_VECS];
#pragma GCC unroll 4
        for (size_t v = 0; v < TILE_VECS; ++v) row[v] = load(b + k * b_k + v * LANES);
#pragma GCC unroll 16
        for (size_t i = 0; i < ROWS; ++i) {
            const Vec element = fill(a[i * a_row + k * a_k]);
#pragma GCC unroll 4
            for (size_t v = 0; v < TILE_VECS; ++v) t.c[i][v] = term(element, row[v], t.c[i][v]);
        }
    }
    tile = t;
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
