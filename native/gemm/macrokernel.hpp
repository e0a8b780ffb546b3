// The macro-kernel: C = A B for one unit of work, tile by tile; bias and the old value of C are added on the way out.
#pragma once

#include "gemm/gemm.hpp"
#include "gemm/tile.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

template <size_t ROWS, Term term>
void microkernel(float* c, size_t ldc, const float* a, size_t a_row, size_t a_k, const float* b, size_t b_k,
                 const float* bias, bool accumulate, size_t cols, size_t K, const float* next, size_t ahead) {
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t v = 0; v < NR_VECS; ++v) __builtin_prefetch(c + i * ldc + v * LANES, 1);
    Tile<ROWS> tile;
    clear(tile);
    multiply<ROWS, term>(tile, a, a_row, a_k, b, b_k, K, next, ahead);
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
                         size_t, const float*, size_t);

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
// B with each of n tiles, between its multiply-adds: it may have to come from memory, and many requests at once would wait
// for each other.
template <Term term>
void macrokernel(float* c_mn, size_t ldc, Factor a, Factor b, const float* bias_n, bool accumulate, size_t M, size_t N,
                 size_t K) {
    const size_t whole = M - M % MR;
    Microkernel* const edge = edge_microkernel<term>(M - whole);
    const size_t tiles = (M + MR - 1) / MR, share = (K + tiles - 1) / tiles;
    for (size_t n = 0; n < N; n += NR) {
        const size_t cols = N - n < NR ? N - n : NR;
        const float* b_panel = b.data + n / NR * b.panel;
        const float* bias = bias_n ? bias_n + n : nullptr;
        const float* a_panel = a.data;
        float* c = c_mn + n;
        const float* next = b_panel + b.panel;
        const size_t ahead = n + NR < N ? share : 0;
        for (size_t m = 0; m < whole; m += MR, a_panel += a.panel, c += MR * ldc, next += ahead * b.next)
            microkernel<MR, term>(c, ldc, a_panel, a.step, a.next, b_panel, b.next, bias, accumulate, cols, K, next, ahead);
        if (edge) edge(c, ldc, a_panel, a.step, a.next, b_panel, b.next, bias, accumulate, cols, K, next, ahead);
    }
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
