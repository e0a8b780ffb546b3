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

// The micro-kernel for the last rows, 1 .. MR - 1 of them; null for none.
template <Term term, size_t ROWS = MR - 1>
Microkernel* edge_microkernel(size_t rows) {
    if constexpr (ROWS == 0) {
        return nullptr;
    } else {
        return rows == ROWS ? microkernel<ROWS, term> : edge_microkernel<term, ROWS - 1>(rows);
    }
}

// A panel of B (K × NR) stays in the L1 or L2 cache while the rows of A pass by from L2. Prefetch 1/n of the next panel of
// B with each of n tiles, and while A passes by for the first time, its next rows: both may have to come from memory.
template <Term term>
void macrokernel(float* c_mn, size_t ldc, Factor a, Factor b, const float* bias_n, bool accumulate, size_t M, size_t N,
                 size_t K) {
    const size_t whole = M - M % MR;
    Microkernel* const edge = edge_microkernel<term>(M - whole);
    const size_t tiles = (M + MR - 1) / MR, share = (K + tiles - 1) / tiles;
    const bool in_rows = a.next == 1;
    Next next;
    next.a_row = in_rows ? a.step : a.next;  // by columns a line holds the rows of a tile, and each k has another one
    next.a_back = static_cast<ptrdiff_t>(LANES * a.next) - static_cast<ptrdiff_t>((LANES - 1) * next.a_row);
    for (size_t n = 0; n < N; n += NR) {
        const size_t cols = N - n < NR ? N - n : NR;
        const float* b_panel = b.data + n / NR * b.panel;
        const float* bias = bias_n ? bias_n + n : nullptr;
        const float* a_panel = a.data;
        float* c = c_mn + n;
        next.b = b_panel + b.panel;
        next.rows = n + NR < N ? share : 0;
        for (size_t m = 0; m < whole; m += MR, a_panel += a.panel, c += MR * ldc, next.b += share * b.next) {
            next.a = n == 0 ? a_panel + a.panel : nullptr;
            microkernel<MR, term>(c, ldc, a_panel, a.step, a.next, b_panel, b.next, bias, accumulate, cols, K, next);
        }
        next.a = nullptr;
        if (edge) edge(c, ldc, a_panel, a.step, a.next, b_panel, b.next, bias, accumulate, cols, K, next);
    }
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
