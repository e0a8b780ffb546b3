// A whole GEMM: blocks that fit the caches, shared among the threads.        Explained in docs/understand/kernels.md
#include "gemm/gemm.hpp"

#include <algorithm>
#include <atomic>

#include "runtime/memory.hpp"
#include "runtime/pool.hpp"

namespace chainrule {
namespace {

// The sum over k is cut into equal parts of at most KC terms, so KC is part of the result. A panel of B of sixteen
// columns is then 32 KB: it passes through the L1 cache once for every MC rows of A.
constexpr size_t KC = 512;

constexpr size_t NC = 2048;                // columns of B packed at a time
constexpr size_t MC = 96;                  // rows of A per unit of work: 192 KB, in the L2 cache
constexpr size_t PACKED_ROWS = 4096;       // of A at a time, if it is packed
constexpr size_t SHARED_FLOATS = 1 << 21;  // of packed A and of B, 8 MB in the L3 cache: as many parts of k as fit
constexpr size_t MIN_PANELS = 2;           // of B per unit of work
constexpr size_t UNITS = 16;               // of work, at least: then all threads end at about the same time
constexpr size_t LAST = 2;                 // units of a block are cut by columns
constexpr size_t PARTS = 4;                // into so many, so that no thread waits long for another in the end
constexpr size_t STRIP = 64;               // terms of k packed by one thread at a time
constexpr size_t PACK_PANELS = 4;          // panels of B packed by one thread at a time, or fewer if there are few
constexpr size_t FEW_ROWS = 4;             // up to here dot products are faster than tiles
constexpr size_t SMALL_B = 1 << 21;        // floats, 8 MB: up to here packing costs more than it saves
constexpr size_t LINE = 16;                // floats in a cache line

#if CHAINRULE_X86
std::atomic<bool> far_lines{__builtin_cpu_is("amd") != 0};
#else
std::atomic<bool> far_lines{false};
#endif

size_t blocks_of(size_t total, size_t size) {
    return (total + size - 1) / size;
}

size_t round_up(size_t n, size_t step) {
    return blocks_of(n, step) * step;
}

// The size of equal blocks of `total`: a multiple of `step`, `count` blocks or more unless they fell below `smallest`.
size_t block_size(size_t total, size_t step, size_t count, size_t smallest) {
    count = std::max<size_t>(1, std::min(count, total / smallest));
    return round_up(blocks_of(total, count), step);
}

View part(View matrix, size_t i, size_t j) {
    return {matrix.data + i * matrix.row + j * matrix.col, matrix.row, matrix.col};
}

struct Matmul {
    float* c_mn;
    size_t ldc;
    View a_mk, b_kn;
    const float* bias_n;
    bool accumulate;
    size_t M, N, K;
    Precision precision;

    const Gemm& kernels = gemm_kernels();
    const size_t MR = kernels.MR, NR = kernels.NR;
    const bool paired = precision == Precision::bf16_pairs;
    const bool plain = precision == Precision::fp32;  // not rounded: a factor may be read where it lies
    const bool wide = MR > LINE / 2 && reads_far_lines();  // a tile takes most of a cache line from a row of Aᵀ and of B
    const bool in_rows = a_mk.col == 1, in_columns = !in_rows && a_mk.row == 1;
    const bool a_in_place = plain && (in_rows || (wide && in_columns && !share_cache_sets(a_mk.col)));
    const bool b_in_place = plain && wide && b_kn.col == 1 && N % NR == 0 && N * K <= SMALL_B &&
                            !share_cache_sets(b_kn.row);
    const bool by_rows = in_rows && a_mk.row != 1;                  // A is rounded as rows,
    const bool spread = a_in_place && share_cache_sets(a_mk.row);  // or its rows moved apart, unit by unit
    const size_t kc = round_up(blocks_of(K, blocks_of(K, KC)), paired ? 2 : 1);
    const size_t nc = std::min(NC, round_up(N, NR));
    const size_t rows = a_in_place ? M : round_up(std::min(PACKED_ROWS, M), MR);  // of A per block
    const size_t depth =  // terms of k per block
        std::min(std::max<size_t>(1, SHARED_FLOATS / (nc + (a_in_place ? 0 : rows)) / kc) * kc, K);
    const size_t mc = block_size(rows, MR, std::max(blocks_of(rows, MC), std::min(UNITS, rows / MC)), MR);
    const size_t unit_cols = block_size(nc, NR, blocks_of(UNITS, blocks_of(rows, mc)), MIN_PANELS * NR);
    const size_t pack_cols = std::min(PACK_PANELS * NR, block_size(nc, NR, UNITS, NR));
    const bool small = rows * nc * depth < SMALL * 16;  // for one thread

    struct Block {  // M rows from m0 on, N columns from n0 on, K terms from k0 on
        float *packed_a, *packed_b;
        size_t m0, n0, k0, M, N, K;
    };

    void run() const {
        const Scratch packed_a(a_in_place ? 0 : words(depth) * rows), packed_b(b_in_place ? 0 : words(depth) * nc);
        for (size_t n = 0; n < N; n += nc)
            for (size_t k = 0; k < K; k += depth)
                for (size_t m = 0; m < M; m += rows) {
                    const Block block = {packed_a.data(), packed_b.data(), m, n, k, std::min(rows, M - m),
                                         std::min(nc, N - n), std::min(depth, K - k)};
                    pack(block);
                    multiply(block);
                }
    }

    size_t words(size_t k) const { return paired ? (k + 1) / 2 : k; }  // that k terms of a sum take

    template <class Body>
    void for_units(size_t count, const Body& body) const {
        if (!small) return parallel_for(count, body);
        for (size_t i = 0; i < count; ++i) body(i);
    }

    // Each thread reads long rows: a strip of k, or some columns or rows if those are contiguous along k.
    void pack(const Block& block) const {
        const size_t jobs_b = b_in_place || block.m0 > 0 ? 0
                              : b_kn.col == 1            ? blocks_of(kc, STRIP)
                                                         : blocks_of(block.N, pack_cols);
        const size_t jobs_a = a_in_place ? 0 : a_mk.row == 1 ? blocks_of(kc, STRIP) : blocks_of(block.M, mc);
        const size_t jobs = jobs_a + jobs_b;
        if (jobs == 0) return;
        for_units(blocks_of(block.K, kc) * jobs, [&](size_t i) {
            const size_t k = i / jobs * kc, job = i % jobs;
            job < jobs_b ? pack_b(block, k, job) : pack_a(block, k, job - jobs_b);
        });
    }

    void pack_b(const Block& block, size_t k, size_t job) const {
        const bool strip = b_kn.col == 1;
        const size_t terms = std::min(kc, block.K - k), first = strip ? job * STRIP : 0;
        if (first >= terms) return;
        const size_t n = strip ? 0 : job * pack_cols;
        const size_t cols = strip ? block.N : std::min(pack_cols, block.N - n);
        kernels.pack_b(block.packed_b + words(k) * nc + n * words(terms) + words(first) * NR, NR * words(terms),
                       part(b_kn, block.k0 + k + first, block.n0 + n), strip ? std::min(STRIP, terms - first) : terms,
                       cols, precision);
    }

    void pack_a(const Block& block, size_t k, size_t job) const {
        const bool strip = a_mk.row == 1;
        const size_t terms = std::min(kc, block.K - k), first = strip ? job * STRIP : 0, m = strip ? 0 : job * mc;
        if (first >= terms) return;
        const size_t count = strip ? std::min(STRIP, terms - first) : terms;
        const size_t height = strip ? block.M : std::min(mc, block.M - m);
        float* to = block.packed_a + words(k) * rows + m * words(terms);
        const View a = part(a_mk, block.m0 + m, block.k0 + k + first);
        if (!by_rows) return kernels.pack_a(to + words(first) * MR, MR * words(terms), a, height, count, precision);
        for (size_t i = 0; i < height; ++i) kernels.round(to + i * words(terms), a.data + i * a.row, terms, precision);
    }

    void multiply(const Block& block) const {
        const size_t units_n = blocks_of(block.N, unit_cols), units = blocks_of(block.M, mc) * units_n;
        const size_t last = small ? 0 : std::min(LAST, units), whole = units - last;
        const size_t part_cols = round_up(blocks_of(unit_cols, PARTS), NR), parts = blocks_of(unit_cols, part_cols);
        for_units(whole + last * parts, [&](size_t i) {
            const size_t unit = i < whole ? i : whole + (i - whole) / parts, part = i < whole ? 0 : (i - whole) % parts;
            const size_t n = unit % units_n * unit_cols, end = std::min(n + unit_cols, block.N), first = n + part * part_cols;
            if (i < whole) return multiply_unit(block, unit / units_n * mc, n, end - n);
            if (first < end) multiply_unit(block, unit / units_n * mc, first, std::min(part_cols, end - first));
        });
    }

    // Rows of A from m on, as many as a unit has, times N columns of B from n on.
    void multiply_unit(const Block& block, size_t m, size_t n, size_t N) const {
        const auto macrokernel = paired ? bf16_pairs().macrokernel : kernels.macrokernel;
        const size_t height = std::min(mc, block.M - m);
        const Scratch moved(spread ? height * spread_row(kc) : 0);
        for (size_t k = 0; k < block.K; k += kc) {
            const size_t terms = std::min(kc, block.K - k);
            const bool first = block.k0 + k == 0;
            const Factor a = spread ? moved_apart(moved.data(), block, m, k, height, terms) : factor_a(block, m, k, terms);
            macrokernel(c_mn + (block.m0 + m) * ldc + block.n0 + n, ldc, a, factor_b(block, n, k, terms),
                        first && bias_n ? bias_n + block.n0 + n : nullptr, accumulate || !first, height, N, words(terms));
        }
    }

    Factor factor_a(const Block& block, size_t m, size_t k, size_t terms) const {
        const float* packed = block.packed_a + words(k) * rows + m * words(terms);
        if (a_in_place) return {part(a_mk, block.m0 + m, block.k0 + k).data, MR * a_mk.row, a_mk.row, a_mk.col};
        if (by_rows) return {packed, MR * words(terms), words(terms), 1};
        return {packed, MR * words(terms), 1, MR};
    }

    Factor moved_apart(float* to, const Block& block, size_t m, size_t k, size_t height, size_t terms) const {
        const View a = spread_rows(to, part(a_mk, block.m0 + m, block.k0 + k), height, terms);
        return {a.data, MR * a.row, a.row, 1};
    }

    Factor factor_b(const Block& block, size_t n, size_t k, size_t terms) const {
        if (b_in_place) return {part(b_kn, block.k0 + k, block.n0 + n).data, NR, 1, b_kn.row};
        return {block.packed_b + words(k) * nc + n * words(terms), NR * words(terms), 1, NR};
    }
};

void add_bias_only(float* c_mn, size_t ldc, const float* bias_n, bool accumulate, size_t M, size_t N) {
    for (size_t m = 0; m < M; ++m)
        for (size_t n = 0; n < N; ++n)
            c_mn[m * ldc + n] = (accumulate ? c_mn[m * ldc + n] : 0.0f) + (bias_n ? bias_n[n] : 0.0f);
}

void multiply_few_rows(float* c_mn, size_t ldc, View a_mk, View b_kn, const float* bias_n, bool accumulate, size_t M,
                       size_t N, size_t K) {
    for_row_blocks(N, M * K, 64, [&](size_t, size_t n, size_t count) {
        gemm_kernels().dot_rows(c_mn + n, ldc, a_mk.data, a_mk.row, b_kn.data + n * b_kn.col, b_kn.col,
                                bias_n ? bias_n + n : nullptr, accumulate, M, count, K);
    });
}

}  // namespace

bool reads_far_lines() {
    return far_lines.load(std::memory_order_relaxed);
}

void set_reads_far_lines(bool yes) {
    far_lines.store(yes, std::memory_order_relaxed);
}

View spread_rows(float* to, View a_mk, size_t M, size_t K) {
    const size_t row = spread_row(K);
    for (size_t m = 0; m < M; ++m) std::copy_n(a_mk.data + m * a_mk.row, K, to + m * row);
    return {to, row, 1};
}

void gemm(float* c_mn, size_t ldc, View a_mk, View b_kn, const float* bias_n, bool accumulate, size_t M, size_t N,
          size_t K, Precision precision) {
    if (M == 0 || N == 0) return;
    if (K == 0) return add_bias_only(c_mn, ldc, bias_n, accumulate, M, N);
    if (M <= FEW_ROWS && precision == Precision::fp32 && b_kn.row == 1 && a_mk.col == 1)
        return multiply_few_rows(c_mn, ldc, a_mk, b_kn, bias_n, accumulate, M, N, K);
    if (precision == Precision::bf16 && uses_vdpbf16ps()) precision = Precision::bf16_pairs;
    Matmul{c_mn, ldc, a_mk, b_kn, bias_n, accumulate, M, N, K, precision}.run();
}

}  // namespace chainrule
