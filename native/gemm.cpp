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

constexpr size_t WIDE = 2048;         // columns of B packed at a time
constexpr size_t PACKED = 1 << 21;    // and as many parts of k as make 8 MB, in the third-level cache
constexpr size_t TALL = 96;           // rows of A per unit of work: 196 KB, in the second-level cache
constexpr size_t NARROW = 8;          // tiles side by side in a unit, at least, or packing A would show
constexpr size_t UNITS = 16;          // wanted, so that all threads end together
constexpr size_t FEW_ROWS = 4;        // up to here packing B costs more than it saves

size_t round_up(size_t n, size_t step) {
    return (n + step - 1) / step * step;
}

// The size of equal pieces of `total`: multiples of `step`, at least `count` of them unless they became smaller than
// `smallest`.
size_t piece(size_t total, size_t step, size_t count, size_t smallest) {
    count = std::max<size_t>(1, std::min(count, total / smallest));
    return round_up((total + count - 1) / count, step);
}

size_t pieces(size_t total, size_t size) {
    return (total + size - 1) / size;
}

void add_bias_only(float* c_mn, size_t ldc, const float* bias_n, bool accumulate, size_t M, size_t N) {
    for (size_t m = 0; m < M; ++m)
        for (size_t n = 0; n < N; ++n)
            c_mn[m * ldc + n] = (accumulate ? c_mn[m * ldc + n] : 0.0f) + (bias_n ? bias_n[n] : 0.0f);
}

template <class Body>
void run(size_t count, bool alone, Body& body) {
    if (!alone) return parallel_for(count, body);
    for (size_t i = 0; i < count; ++i) body(i);
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
    const size_t deep = pieces(K, pieces(K, DEEP));
    const size_t wide = std::min(WIDE, round_up(N, cols));
    const size_t chunk = std::min(std::max<size_t>(1, PACKED / wide / deep) * deep, K);
    const size_t tall = piece(M, rows, std::max(pieces(M, TALL), std::min(UNITS, M / TALL)), rows);
    const size_t across = piece(wide, cols, pieces(UNITS, pieces(M, tall)), NARROW * cols);
    const bool small = M * wide * chunk < SMALL * 16;
    const bool copy_a = !in_place || rounded;
    // Where several units share rows of A these are copied once, together with B; otherwise each unit copies its own.
    const bool share_a = copy_a && across < wide && M * chunk <= PACKED;
    Scratch packed_b(chunk * wide), packed_a(share_a ? round_up(M, rows) * chunk : 0);

    // A (height, depth) from (m, k) on.
    auto copied = [&](float* copy, size_t m, size_t k, size_t height, size_t depth) {
        const View a = {a_mk.data + m * a_mk.row + k * a_mk.col, a_mk.row, a_mk.col};
        if (!in_place) return kernels.pack_a(copy, a, height, depth, precision);
        for (size_t i = 0; i < height; ++i) kernels.round(copy + i * depth, a.data + i * a.row, depth, precision);
    };

    for (size_t n0 = 0; n0 < N; n0 += wide) {
        const size_t width = std::min(wide, N - n0), units_n = pieces(width, across);
        for (size_t k0 = 0; k0 < K; k0 += chunk) {
            const size_t length = std::min(chunk, K - k0), parts = pieces(length, deep), groups = pieces(width, 4 * cols);
            const size_t units_m = pieces(M, tall);
            auto pack = [&](size_t index) {
                if (index >= parts * groups) {
                    index -= parts * groups;
                    const size_t k = index / units_m * deep, m = index % units_m * tall;
                    const size_t depth = std::min(deep, length - k);
                    copied(packed_a.data() + k * round_up(M, rows) + m * depth, m, k0 + k, std::min(tall, M - m), depth);
                    return;
                }
                const size_t k = index / groups * deep, n = index % groups * 4 * cols;
                const size_t depth = std::min(deep, length - k), count = std::min(4 * cols, width - n);
                const View b = {b_kn.data + (k0 + k) * b_kn.row + (n0 + n) * b_kn.col, b_kn.row, b_kn.col};
                kernels.pack_b(packed_b.data() + k * wide + n * depth, b, depth, count, precision);
            };
            auto unit = [&](size_t index) {
                const size_t m = index / units_n * tall, n = index % units_n * across;
                const size_t height = std::min(tall, M - m), count = std::min(across, width - n);
                const Scratch own(copy_a && !share_a ? round_up(height, rows) * deep : 0);
                for (size_t k = 0; k < length; k += deep) {
                    const size_t depth = std::min(deep, length - k);
                    View a = {a_mk.data + m * a_mk.row + (k0 + k) * a_mk.col, a_mk.row, a_mk.col};
                    size_t panel = rows * a.row;
                    if (copy_a) {
                        float* copy = share_a ? packed_a.data() + k * round_up(M, rows) + m * depth : own.data();
                        if (!share_a) copied(copy, m, k0 + k, height, depth);
                        a = in_place ? View{copy, depth, 1} : View{copy, 1, rows};
                        panel = rows * depth;
                    }
                    const bool first = k0 + k == 0;
                    kernels.multiply(c_mn + m * ldc + n0 + n, ldc, a.data, panel, a.row, a.col,
                                     packed_b.data() + k * wide + n * depth, first && bias_n ? bias_n + n0 + n : nullptr,
                                     accumulate || !first, height, count, depth);
                }
            };
            run(parts * (groups + (share_a ? units_m : 0)), small, pack);
            run(units_m * units_n, small, unit);
        }
    }
}

}  // namespace chainrule
