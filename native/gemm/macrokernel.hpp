// The macro-kernel: C = A B for one unit of work, tile by tile; bias and the old value of C are added on the way out.
#pragma once

#include "gemm/gemm.hpp"
#include "gemm/tile.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

template <size_t ROWS, Term term>
void microkernel(float* c, size_t ldc, const float* a, size_t a_row, size_t a_k, const float* b, size_t b_k,
                 const float* bias, bool accumulate, size_t cols, size_t K, const Next& next) {
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t v = 0; v < NR_VECS; ++v) __builtin_prefetch(c + i * ldc + v * LANES, 1);
    Tile<ROWS> tile;
    clear(tile);
    multiply<ROWS, term>(tile, a, a_row, a_k, b, b_k, K, next);
    if (cols == NR) {
        for_vectors(tile, [=](size_t i, size_t v, Vec out) {
            float* to = c + i * ldc + v;
            if (bias) out = out + load(bias + v);
            if (accumulate) out = load(to) + out;
            store(to, out);
        });
        return;
    }
    float row[NR];
    for (size_t i = 0; i < ROWS; ++i) {
        for (size_t v = 0; v < NR_VECS; ++v) store(row + v * LANES, tile.c[i][v]);
        for (size_t j = 0; j < cols; ++j) {
            const float out = row[j] + (bias ? bias[j] : 0.0f);
            c[i * ldc + j] = accumulate ? c[i * ldc + j] + out : out;
        }
    }
}

using Microkernel = void(float*, size_t, const float*, size_t, size_t, const float*, size_t, const float*, bool, size_t,
                         size_t, const Next&);

// The micro-kernel of so many rows, 1 .. MR.
template <Term term, size_t ROWS = MR>
Microkernel* microkernel_of(size_t rows) {
    if constexpr (ROWS == 1) {
        return microkernel<1, term>;
    } else {
        return rows == ROWS ? microkernel<ROWS, term> : microkernel_of<term, ROWS - 1>(rows);
    }
}

// A panel of B (K × NR) stays in the L1 or L2 cache while the rows of A pass by from L2. Prefetch 1/n of the next panel of
// B with each of n tiles, and while A passes by for the first time, its next rows: both may have to come from memory.
//
// Tiles of A in place are equally high: a last one of two rows would take the time of four, since a sum must end before
// the next one is added to it.
template <Term term>
void macrokernel(float* c_mn, size_t ldc, Factor a, Factor b, const float* bias_n, bool accumulate, size_t M, size_t N,
                 size_t K) {
    if (M == 0) return;
    const size_t tiles = (M + MR - 1) / MR, share = (K + tiles - 1) / tiles;
    const bool in_place = a.panel == MR * a.step;
    const size_t height = in_place ? (M + tiles - 1) / tiles : MR, a_panel = in_place ? height * a.step : a.panel;
    const size_t last = M - (tiles - 1) * height;
    Microkernel *const tile = microkernel_of<term>(height), *const last_tile = microkernel_of<term>(last);
    Next next;
    next.a_row = a.next == 1 ? a.step : a.next;  // by columns a line holds the rows of a tile, and each k has another one
    next.a_back = static_cast<ptrdiff_t>(LANES * a.next) - static_cast<ptrdiff_t>((LANES - 1) * next.a_row);
    for (size_t n = 0; n < N; n += NR) {
        const size_t cols = N - n < NR ? N - n : NR;
        const float* bias = bias_n ? bias_n + n : nullptr;
        const float *from_a = a.data, *const from_b = b.data + n / NR * b.panel;
        float* c = c_mn + n;
        next.b = from_b + b.panel;
        next.rows = n + NR < N ? share : 0;
        for (size_t t = 0; t + 1 < tiles; ++t, from_a += a_panel, c += height * ldc, next.b += share * b.next) {
            next.a = n == 0 ? from_a + a_panel : nullptr;
            tile(c, ldc, from_a, a.step, a.next, from_b, b.next, bias, accumulate, cols, K, next);
        }
        next.a = nullptr;
        last_tile(c, ldc, from_a, a.step, a.next, from_b, b.next, bias, accumulate, cols, K, next);
    }
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
