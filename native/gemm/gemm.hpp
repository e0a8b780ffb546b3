#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

// A matrix somewhere in memory: element (i, j) at data[i row + j col]. A transpose swaps row and col.
struct View {
    const float* data;
    size_t row, col;
};

// What A and B are rounded to before they are multiplied; sums are always float32. bf16_pairs is bf16 with two terms of
// the sum in one 32-bit word, for VDPBF16PS: gemm() uses it in place of bf16 where the CPU has that instruction.
enum class Precision { fp32, bf16, fp16, bf16_pairs };

// C (M, N), rows ldc apart, = A (M, K) B (K, N) + bias (N,) if given; with `accumulate` C += that.
// Runs on the pool; inside a block of the pool it runs on that thread alone. Each element is summed over k in a fixed
// order, so the result depends neither on the number of threads nor on how C is cut into blocks.
void gemm(float* c_mn, size_t ldc, View a_mk, View b_kn, const float* bias_n, bool accumulate, size_t M, size_t N,
          size_t K, Precision precision = Precision::fp32);

// Whether a tile takes columns of A and rows of B from where they lie, each term of its sum from other lines, far apart.
// Zen 4 multiplies on while such lines arrive. On Cascade Lake it took up to twice the time of packed ones: so it is
// done on AMD's CPUs. The bits are the same.
bool reads_far_lines();
void set_reads_far_lines(bool yes);  // for tests

// Rows a multiple of 4 KB apart lie in the same few sets of the L1 cache (8 lines each): the rows of a tile drive each
// other out. So they are copied to rows an odd number of cache lines apart, on one thread: K floats each, `to` (M, K)
// with room for spread_row(K) floats per row.
inline bool share_cache_sets(size_t row) { return row % 1024 == 0; }
inline size_t spread_row(size_t K) { return (K + 15) / 16 * 16 | 16; }
View spread_rows(float* to, View a_mk, size_t M, size_t K);

// A factor as the micro-kernel reads it: A in panels of MR rows, B in panels of NR columns (with step = 1). Row or column i
// of panel p has its term k at data[p panel + i step + k next].
struct Factor {
    const float* data;
    size_t panel, step, next;
};

// C (M, N) = or += A B + bias on one thread. With bf16_pairs K counts words.
using Macrokernel = void(float* c_mn, size_t ldc, Factor a, Factor b, const float* bias_n, bool accumulate, size_t M, size_t N,
                         size_t K);

// What gemm.cpp puts together, on one thread.
struct Gemm {
    size_t MR, NR;  // rows and columns of the register tile

    // A (M, K) as panels of MR rows, each stored [k][row]; rows beyond M are 0. The panels begin `panel` floats apart:
    // MR K for A alone, more if it is a part in k of a larger matrix. As bf16_pairs it is stored [k / 2][row].
    void (*pack_a)(float* packed, size_t panel, View a_mk, size_t M, size_t K, Precision precision);

    // B (K, N) as panels of NR columns, each stored [k][column]; columns beyond N are 0.
    void (*pack_b)(float* packed, size_t panel, View b_kn, size_t K, size_t N, Precision precision);

    // y = x, rounded; as bf16_pairs (n + 1) / 2 words.
    void (*round)(float* y_n, const float* x_n, size_t n, Precision precision);

    Macrokernel* macrokernel;

    // The same for few rows of A (contiguous, a_row apart) and B = Wᵀ with contiguous rows of W (N, K): dot products,
    // without packing.
    void (*dot_rows)(float* c_mn, size_t ldc, const float* a, size_t a_row, const float* w_nk, size_t w_row,
                     const float* bias_n, bool accumulate, size_t M, size_t N, size_t K);

    // out_c += the sum over the rows of x (R, C).
    void (*column_sums)(float* out_c, const float* x_rc, size_t ldx, size_t R, size_t C);
};
CHAINRULE_KERNELS(Gemm, gemm_kernels)

struct Bf16Pairs {
    Macrokernel* macrokernel;
};
CHAINRULE_KERNELS(Bf16Pairs, bf16_pairs)

}  // namespace chainrule
