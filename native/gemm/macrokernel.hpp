// C = A B for one unit of work: tiles in registers, then bias and the old value on the way out.
#pragma once

#include "gemm/tile.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

template <size_t ROWS, Term term>
void tile_product(float* c, size_t ldc, const float* a, size_t a_row, size_t a_k, const float* b, const float* bias,
                  bool accumulate, size_t cols, size_t K) {
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t v = 0; v < TILE_VECS; ++v) __builtin_prefetch(c + i * ldc + v * LANES, 1);
    Tile<ROWS> tile;
    clear(tile);
    multiply<ROWS, term>(tile, a, a_row, a_k, b, TILE_COLS, K);
    if (cols == TILE_COLS) {
#pragma GCC unroll 16
        for (size_t i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
            for (size_t v = 0; v < TILE_VECS; ++v) {
                float* to = c + i * ldc + v * LANES;
                Vec out = tile.c[i][v];
                if (bias) out = out + load(bias + v * LANES);
                if (accumulate) out = load(to) + out;
                store(to, out);
            }
        return;
    }
    float row[TILE_COLS];
    for (size_t i = 0; i < ROWS; ++i) {
        for (size_t v = 0; v < TILE_VECS; ++v) store(row + v * LANES, tile.c[i][v]);
        for (size_t j = 0; j < cols; ++j) {
            const float out = row[j] + (bias ? bias[j] : 0.0f);
            c[i * ldc + j] = accumulate ? c[i * ldc + j] + out : out;
        }
    }
}

using TileProduct = void(float*, size_t, const float*, size_t, size_t, const float*, const float*, bool, size_t, size_t);

// The kernel for the last rows: ROWS is 1 .. TILE_ROWS - 1.
template <Term term, size_t ROWS = TILE_ROWS - 1>
TileProduct* rest_product(size_t rows) {
    if constexpr (ROWS == 0) {
        return nullptr;
    } else {
        return rows == ROWS ? tile_product<ROWS, term> : rest_product<term, ROWS - 1>(rows);
    }
}

// A panel of B (K × TILE_COLS) stays in the first cache while the rows of A pass by; A comes from the second one. The
// next panel is asked for meanwhile, a part with each tile: it may have to come from memory, where all cores queue.
template <Term term>
void multiply_unit(float* c_mn, size_t ldc, const float* a, size_t a_panel, size_t a_row, size_t a_k,
                   const float* b_packed, const float* bias_n, bool accumulate, size_t M, size_t N, size_t K) {
    const size_t whole = M - M % TILE_ROWS;
    TileProduct* const rest = rest_product<term>(M - whole);
    const size_t tiles = whole ? whole / TILE_ROWS : 1, lines = K * TILE_VECS, part = (lines + tiles - 1) / tiles;
    for (size_t n = 0; n < N; n += TILE_COLS) {
        const size_t cols = N - n < TILE_COLS ? N - n : TILE_COLS;
        const float* b = b_packed + n * K;
        const float* bias = bias_n ? bias_n + n : nullptr;
        const float* panel = a;
        float* c = c_mn + n;
        size_t asked = n + TILE_COLS < N ? 0 : lines;  // of the lines of the next panel
        for (size_t m = 0; m < whole; m += TILE_ROWS, panel += a_panel, c += TILE_ROWS * ldc) {
            for (size_t i = 0; i < part && asked < lines; ++i, ++asked)
                __builtin_prefetch(b + (lines + asked) * LANES, 0, 2);
            tile_product<TILE_ROWS, term>(c, ldc, panel, a_row, a_k, b, bias, accumulate, cols, K);
        }
        if (rest) rest(c, ldc, panel, a_row, a_k, b, bias, accumulate, cols, K);
    }
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
