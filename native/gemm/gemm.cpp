// A whole matrix product: blocks that fit the caches, shared among the threads.        Explained in docs/understand/kernels.md
#include "gemm/gemm.hpp"

#include <algorithm>

#include "runtime/memory.hpp"
#include "runtime/pool.hpp"

namespace chainrule {
namespace {

// The sum over k is cut into equal parts of at most this many terms, so this number is part of the result. Sixteen
// columns of B are then 32 KB: a first-level cache, through which a panel of B passes once for every unit of A.
constexpr size_t DEEP = 512;

constexpr size_t WIDE = 2048;         // columns of B packed at a time
constexpr size_t HIGH = 4096;         // rows of A, if they are packed
constexpr size_t PACKED = 1 << 21;    // and as many parts of k as make 8 MB of both, in the third-level cache
constexpr size_t TALL = 96;           // rows of A per unit of work: 196 KB, in the second-level cache
constexpr size_t NARROW = 8;          // tiles side by side in a unit, at least
constexpr size_t UNITS = 16;          // wanted, so that all threads end together
constexpr size_t STRIP = 64;          // terms of k packed by one thread at a time
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
    if (precision == Precision::bf16 && uses_vdpbf16ps()) precision = Precision::bf16_pairs;
    const bool paired = precision == Precision::bf16_pairs;
    const auto words = [=](size_t k) { return paired ? (k + 1) / 2 : k; };  // that k terms of a sum take
    const auto multiply = paired ? pairs().multiply : kernels.multiply;

    if (M <= FEW_ROWS && !rounded && b_kn.row == 1 && a_mk.col == 1) {
        const size_t cols = 64;
        for_row_blocks(N, M * K, cols, [&](size_t, size_t n, size_t count) {
            kernels.dot_rows(c_mn + n, ldc, a_mk.data, a_mk.row, b_kn.data + n * b_kn.col, b_kn.col,
                             bias_n ? bias_n + n : nullptr, accumulate, M, count, K);
        });
        return;
    }

    const size_t rows = kernels.tile_rows, cols = kernels.tile_cols;
    const bool in_place = a_mk.col == 1 && !rounded;       // rows of A that are contiguous are read where they are,
    const bool by_rows = a_mk.col == 1 && a_mk.row != 1;   // or copied to be rounded; others are packed into panels
    const size_t deep = round_up(pieces(K, pieces(K, DEEP)), paired ? 2 : 1);
    const size_t wide = std::min(WIDE, round_up(N, cols)), high = in_place ? M : round_up(std::min(HIGH, M), rows);
    const size_t chunk = std::min(std::max<size_t>(1, PACKED / (wide + (in_place ? 0 : high)) / deep) * deep, K);
    const size_t tall = piece(high, rows, std::max(pieces(high, TALL), std::min(UNITS, high / TALL)), rows);
    const size_t across = piece(wide, cols, pieces(UNITS, pieces(high, tall)), NARROW * cols);
    const bool small = high * wide * chunk < SMALL * 16;
    const Scratch packed_b(words(chunk) * wide), packed_a(in_place ? 0 : words(chunk) * high);

    for (size_t n0 = 0; n0 < N; n0 += wide)
        for (size_t k0 = 0; k0 < K; k0 += chunk)
            for (size_t m0 = 0; m0 < M; m0 += high) {
                const size_t width = std::min(wide, N - n0), height = std::min(high, M - m0);
                const size_t length = std::min(chunk, K - k0), parts = pieces(length, deep);
                const View a = {a_mk.data + m0 * a_mk.row + k0 * a_mk.col, a_mk.row, a_mk.col};
                const View b = {b_kn.data + k0 * b_kn.row + n0 * b_kn.col, b_kn.row, b_kn.col};

                // Packing is cut so that each thread reads long rows: along k, or across if those are contiguous.
                const size_t jobs_b = m0 > 0 ? 0 : b.col == 1 ? pieces(deep, STRIP) : pieces(width, 4 * cols);
                const size_t jobs_a = in_place ? 0 : a.row == 1 ? pieces(deep, STRIP) : pieces(height, tall);
                auto pack = [&](size_t index) {
                    const size_t job = index % (jobs_a + jobs_b), k = index / (jobs_a + jobs_b) * deep;
                    const size_t depth = std::min(deep, length - k);
                    const bool of_b = job < jobs_b, strip = of_b ? b.col == 1 : a.row == 1;
                    const size_t from = of_b ? job : job - jobs_b;
                    const size_t first = k + (strip ? from * STRIP : 0), last = strip ? first + STRIP : k + depth;
                    if (first >= k + depth) return;
                    const size_t count = std::min(last, k + depth) - first;
                    if (of_b) {
                        const size_t n = strip ? 0 : from * 4 * cols;
                        kernels.pack_b(packed_b.data() + words(k) * wide + n * words(depth) + words(first - k) * cols,
                                       cols * words(depth),
                                       {b.data + first * b.row + n * b.col, b.row, b.col}, count,
                                       strip ? width : std::min(4 * cols, width - n), precision);
                        return;
                    }
                    const size_t m = strip ? 0 : from * tall, many = strip ? height : std::min(tall, height - m);
                    float* to = packed_a.data() + words(k) * high + m * words(depth);
                    const View part = {a.data + m * a.row + first * a.col, a.row, a.col};
                    if (!by_rows)
                        return kernels.pack_a(to + words(first - k) * rows, rows * words(depth), part, many, count, precision);
                    for (size_t i = 0; i < many; ++i)
                        kernels.round(to + i * words(depth), part.data + i * part.row, depth, precision);
                };

                const size_t units_n = pieces(width, across);
                auto unit = [&](size_t index) {
                    const size_t m = index / units_n * tall, n = index % units_n * across;
                    for (size_t k = 0; k < length; k += deep) {
                        const size_t depth = std::min(deep, length - k);
                        const float* copy = packed_a.data() + words(k) * high + m * words(depth);
                        const View from = in_place  ? View{a.data + m * a.row + k, a.row, 1}
                                          : by_rows ? View{copy, words(depth), 1}
                                                    : View{copy, 1, rows};
                        const size_t panel = in_place ? rows * a.row : rows * words(depth);
                        const bool first = k0 + k == 0;
                        multiply(c_mn + (m0 + m) * ldc + n0 + n, ldc, from.data, panel, from.row, from.col,
                                 packed_b.data() + words(k) * wide + n * words(depth),
                                 first && bias_n ? bias_n + n0 + n : nullptr, accumulate || !first,
                                 std::min(tall, height - m), std::min(across, width - n), words(depth));
                    }
                };
                run(parts * (jobs_a + jobs_b), small, pack);
                run(pieces(height, tall) * units_n, small, unit);
            }
}

}  // namespace chainrule
