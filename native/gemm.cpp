// A whole matrix product: blocks that fit the caches, shared among the threads.        Explained in docs/kernels.md
#include "gemm.hpp"

#include <algorithm>

#include "memory.hpp"
#include "pool.hpp"

namespace chainrule {
namespace {

// The sum over k is cut into equal parts of at most this many terms, so this number is part of the result. Sixteen
// columns of B are then 32 KB: a first-level cache, through which a panel of B passes once for every unit of A.
constexpr size_t DEEP = 512;

constexpr size_t WIDE = 2048;   // columns of B packed at a time: 4 MB, in the third-level cache
constexpr size_t TALL = 96;     // rows of A per unit of work: 196 KB, in the second-level cache
constexpr size_t FEW_ROWS = 4;  // up to here packing B costs more than it saves

size_t round_up(size_t n, size_t step) {
    return (n + step - 1) / step * step;
}

// Pieces of `total`, each a multiple of `step`: as many as `largest` asks for, and if that is few, up to `wanted`, so
// that all threads end together; but none below `smallest`.
size_t piece(size_t total, size_t step, size_t largest, size_t smallest, size_t wanted) {
    size_t count = (total + largest - 1) / largest;
    count = std::max(count, std::min(wanted, total / smallest));
    return round_up((total + count - 1) / std::max<size_t>(count, 1), step);
}

void add_bias_only(float* c_mn, size_t ldc, const float* bias_n, bool accumulate, size_t M, size_t N) {
    for (size_t m = 0; m < M; ++m)
        for (size_t n = 0; n < N; ++n)
            c_mn[m * ldc + n] = (accumulate ? c_mn[m * ldc + n] : 0.0f) + (bias_n ? bias_n[n] : 0.0f);
}

}  // namespace

void gemm(float* c_mn, size_t ldc, View a_mk, View b_kn, const float* bias_n, bool accumulate, size_t M, size_t N,
          size_t K, Precision precision) {
    if (M == 0 || N == 0) return;
    if (K == 0) return add_bias_only(c_mn, ldc, bias_n, accumulate, M, N);
    const Gemm& kernels = gemm_kernels();
    const bool rounded = precision != Precision::fp32;

    if (M <= FEW_ROWS && !rounded && b_kn.row == 1 && a_mk.col == 1) {
        const size_t cols = 64;
        for_row_blocks(N, M * K, cols, [&](size_t, size_t n, size_t count) {
            kernels.dot_rows(c_mn + n, ldc, a_mk.data, a_mk.row, b_kn.data + n * b_kn.col, b_kn.col,
                             bias_n ? bias_n + n : nullptr, accumulate, M, count, K);
        });
        return;
    }

    const size_t rows = kernels.tile_rows, cols = kernels.tile_cols;
    const bool in_place = a_mk.col == 1;  // rows that are contiguous need no packing
    const size_t wide = std::min(WIDE, round_up(N, cols)), parts = (K + DEEP - 1) / DEEP, deep = (K + parts - 1) / parts;
    const size_t wanted = 8;  // units of work, a few per thread
    const size_t tall = piece(M, rows, TALL, TALL, wanted);
    const size_t units_m = (M + tall - 1) / tall;
    const size_t across = piece(wide, cols, wide, 8 * cols, (wanted + units_m - 1) / units_m);
    Scratch packed_b(deep * wide);

    for (size_t n0 = 0; n0 < N; n0 += wide) {
        const size_t width = std::min(wide, N - n0);
        const size_t units_n = (width + across - 1) / across;
        for (size_t k0 = 0; k0 < K; k0 += deep) {
            const size_t depth = std::min(deep, K - k0);
            const float* bias = bias_n && k0 == 0 ? bias_n + n0 : nullptr;
            const bool add = accumulate || k0 > 0;
            for_row_blocks(width, depth, 4 * cols, [&](size_t, size_t n, size_t count) {
                const View b = {b_kn.data + k0 * b_kn.row + (n0 + n) * b_kn.col, b_kn.row, b_kn.col};
                kernels.pack_b(packed_b.data() + n * depth, b, depth, count, precision);
            });
            auto unit = [&](size_t index) {
                const size_t m = index / units_n * tall, n = index % units_n * across;
                const size_t height = std::min(tall, M - m), count = std::min(across, width - n);
                const View a = {a_mk.data + m * a_mk.row + k0 * a_mk.col, a_mk.row, a_mk.col};
                float* c = c_mn + m * ldc + n0 + n;
                const float* b = packed_b.data() + n * depth;
                const float* unit_bias = bias ? bias + n : nullptr;
                if (in_place && !rounded) {
                    kernels.multiply(c, ldc, a.data, rows * a.row, a.row, 1, b, unit_bias, add, height, count, depth);
                    return;
                }
                Scratch copy(round_up(height, rows) * depth);
                if (in_place) {
                    for (size_t i = 0; i < height; ++i)
                        kernels.round(copy.data() + i * depth, a.data + i * a.row, depth, precision);
                    kernels.multiply(c, ldc, copy.data(), rows * depth, depth, 1, b, unit_bias, add, height, count, depth);
                } else {
                    kernels.pack_a(copy.data(), a, height, depth, precision);
                    kernels.multiply(c, ldc, copy.data(), rows * depth, 1, rows, b, unit_bias, add, height, count, depth);
                }
            };
            if (M * width * depth < SMALL * 16)
                for (size_t index = 0; index < units_m * units_n; ++index) unit(index);
            else
                parallel_for(units_m * units_n, unit);
        }
    }
}

}  // namespace chainrule
