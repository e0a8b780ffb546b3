#pragma once

#include "levels.hpp"

namespace chainrule {

// A matrix somewhere in memory: element (i, j) at data[i row + j col]. A transpose swaps row and col.
struct View {
    const float* data;
    size_t row, col;
};

// C (M, N), rows ldc apart, = A (M, K) B (K, N) + bias (N,) if given; with `accumulate` C += that.
// Runs on the pool; inside a block of the pool it runs on that thread alone. The sum over k is made in a fixed order.
void gemm(float* c_mn, size_t ldc, View a_mk, View b_kn, const float* bias_n, bool accumulate, size_t M, size_t N,
          size_t K);

}  // namespace chainrule
