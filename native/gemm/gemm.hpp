#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

// A matrix somewhere in memory: element (i, j) at data[i row + j col]. A transpose swaps row and col.
struct View {
    const float* data;
    size_t row, col;
};

// What the factors are rounded to before they are multiplied; sums are always float. bf16_pairs is bf16 with two terms
// of the sum in a word, for CPUs that multiply both at once: gemm() takes it in place of bf16 where that is so.
enum class Precision { fp32, bf16, fp16, bf16_pairs };

// C (M, N), rows ldc apart, = A (M, K) B (K, N) + bias (N,) if given; with `accumulate` C += that.
// Runs on the pool; inside a block of the pool it runs on that thread alone. Each element is summed over k in a fixed
// order, so the result depends neither on the number of threads nor on how C is cut into blocks.
void gemm(float* c_mn, size_t ldc, View a_mk, View b_kn, const float* bias_n, bool accumulate, size_t M, size_t N,
          size_t K, Precision precision = Precision::fp32);

// The single-threaded pieces gemm.cpp puts together (gemm.isa.cpp).
struct Gemm {
    size_t tile_rows, tile_cols;

    // A (M, K) as panels of tile_rows rows, each stored [k][row]; rows beyond M are 0. The panels begin `panel` floats
    // apart: tile_rows K for A alone, more if it is a piece in k of a larger matrix. As pairs
    // two terms of k share a word: [k / 2][row].
    void (*pack_a)(float* packed, size_t panel, View a_mk, size_t M, size_t K, Precision precision);

    // B (K, N) as panels of tile_cols columns, each stored [k][column]; columns beyond N are 0.
    void (*pack_b)(float* packed, size_t panel, View b_kn, size_t K, size_t N, Precision precision);

    // y = x, rounded; as pairs: (n + 1) / 2 words.
    void (*round)(float* y_n, const float* x_n, size_t n, Precision precision);

    // C (M, N) = or += A B + bias. The rows of A are a_row apart, its panels of tile_rows rows a_panel, the steps in k a_k;
    // B is packed.
    void (*multiply)(float* c_mn, size_t ldc, const float* a, size_t a_panel, size_t a_row, size_t a_k,
                     const float* b_packed, const float* bias_n, bool accumulate, size_t M, size_t N, size_t K);

    // The same for few rows of A (contiguous, a_row apart) and B = Wᵀ with contiguous rows of W (N, K): products of
    // rows, without packing.
    void (*dot_rows)(float* c_mn, size_t ldc, const float* a, size_t a_row, const float* w_nk, size_t w_row,
                     const float* bias_n, bool accumulate, size_t M, size_t N, size_t K);

    // out_c += the sum over the rows of x (R, C).
    void (*column_sums)(float* out_c, const float* x_rc, size_t ldx, size_t R, size_t C);
};
CHAINRULE_KERNELS(Gemm, gemm_kernels)

struct Pairs {
    // Gemm::multiply of words with two terms of k each; K counts words.
    void (*multiply)(float* c_mn, size_t ldc, const float* a, size_t a_panel, size_t a_row, size_t a_k,
                     const float* b_packed, const float* bias_n, bool accumulate, size_t M, size_t N, size_t K);
};
CHAINRULE_KERNELS(Pairs, pairs)

}  // namespace chainrule
