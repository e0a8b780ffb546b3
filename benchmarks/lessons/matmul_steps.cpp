// From three loops to a register tile: C = A B for row-major n × n matrices, one step at a time.
// The steps after these (packing, threads) are native/gemm/gemm.isa.cpp and gemm.cpp. Explained in docs/understand/kernels.md
#include "gemm/tile.hpp"  // of native: the tile the kernels themselves use

using namespace chainrule::CHAINRULE_ISA;

namespace {

void zero(float* c, size_t n) {
    for (size_t i = 0; i < n * n; ++i) c[i] = 0;
}

size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

}  // namespace

extern "C" {

// Row times column: one output at a time.
void dot_products(float* __restrict c, const float* a, const float* b, size_t n) {
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
            float sum = 0;
            for (size_t k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

// A column of C is a sum of the columns of A, weighted by a column of B.
void weighted_columns(float* __restrict c, const float* a, const float* b, size_t n) {
    zero(c, n);
    for (size_t j = 0; j < n; ++j)
        for (size_t k = 0; k < n; ++k)
            for (size_t i = 0; i < n; ++i) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

// A row of C is a sum of the rows of B, weighted by a row of A: the same, along the rows.
void weighted_rows(float* __restrict c, const float* a, const float* b, size_t n) {
    zero(c, n);
    for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < n; ++k)
            for (size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

// The same for a block of B that stays in the first-level cache (24 KB) while all rows of A and C pass by.
void blocked(float* __restrict c, const float* a, const float* b, size_t n) {
    constexpr size_t DEEP = 32, WIDE = 192;
    zero(c, n);
    for (size_t k0 = 0; k0 < n; k0 += DEEP)
        for (size_t j0 = 0; j0 < n; j0 += WIDE) {
            const size_t k1 = smaller(n, k0 + DEEP), j1 = smaller(n, j0 + WIDE);
            for (size_t i = 0; i < n; ++i)
                for (size_t k = k0; k < k1; ++k)
                    for (size_t j = j0; j < j1; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
        }
}

// A tile of C stays in registers for the whole sum over k; A and B are read where they lie. The last tile of a row or
// column starts early enough to fit (n is at least the size of a tile), and computes a few elements a second time.
void register_tile(float* __restrict c, const float* a, const float* b, size_t n) {
    for (size_t j0 = 0; j0 < n; j0 += NR)
        for (size_t i0 = 0; i0 < n; i0 += MR) {
            const size_t i = smaller(i0, n - MR), j = smaller(j0, n - NR);
            Tile<MR> tile;
            clear(tile);
            multiply(tile, a + i * n, n, 1, b + j, n, n);
            for (size_t r = 0; r < MR; ++r)
                for (size_t v = 0; v < NR_VECS; ++v) store(c + (i + r) * n + j + v * LANES, tile.c[r][v]);
        }
}

// What the CPU can do at best: the multiply-adds of a tile of `size` floats without any memory. The tile comes from
// outside, so that the compiler cannot see that its sums are alike. Returns how many operations that were.
size_t limit(float* tile_floats, size_t size, size_t rounds) {
    if (size < MR * NR) return 0;
    Vec c[MR * NR_VECS];
    for (size_t i = 0; i < MR * NR_VECS; ++i) c[i] = load(tile_floats + i * LANES);
    const Vec x = fill(tile_floats[0]), y = fill(tile_floats[1]);
    for (size_t n = 0; n < rounds; ++n) {
#pragma GCC unroll 32
        for (size_t i = 0; i < MR * NR_VECS; ++i) c[i] = fma(x, y, c[i]);
    }
    for (size_t i = 0; i < MR * NR_VECS; ++i) store(tile_floats + i * LANES, c[i]);
    return 2 * rounds * MR * NR;
}

}  // extern "C"
