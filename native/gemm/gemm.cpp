// A whole GEMM: blocks that fit the caches, shared among the threads.        Explained in docs/understand/kernels.md
#include "gemm/gemm.hpp"

#include <algorithm>

#include "runtime/memory.hpp"
#include "runtime/pool.hpp"

namespace chainrule {
namespace {

// The sum over k is cut into equal parts of at most KC terms, so KC is part of the result. A panel of B of sixteen
// columns is then 32 KB: it passes through the L1 cache once for every MC rows of A.
constexpr size_t KC = 512;

constexpr size_t NC = 2048;              // columns of B packed at a time
constexpr size_t MC = 96;                // rows of A per unit of work: 196 KB, in the L2 cache
constexpr size_t PACKED_ROWS = 4096;     // of A at a time, if it is packed
constexpr size_t PACKED_FLOATS = 1 << 21;  // of A and B together, 8 MB in the L3 cache: as many parts of k as fit
constexpr size_t MIN_PANELS = 8;         // of B per unit of work
constexpr size_t UNITS = 16;             // of work, at least: then all threads end at about the same time
constexpr size_t STRIP = 64;             // terms of k packed by one thread at a time
constexpr size_t PACK_PANELS = 4;        // panels of B packed by one thread at a time
constexpr size_t FEW_ROWS = 4;           // up to here packing B costs more than it saves

size_t blocks_of(size_t total, size_t size) {
    return (total + size - 1) / size;
}

size_t round_up(size_t n, size_t step) {
    return blocks_of(n, step) * step;
}

// The size of equal blocks of `total`: a multiple of `step`, for at least `count` blocks unless they became smaller than
// `smallest`.
size_t block_size(size_t total, size_t step, size_t count, size_t smallest) {
    count = std::max<size_t>(1, std::min(count, total / smallest));
    return round_up(blocks_of(total, count), step);
}

View part(View matrix, size_t i, size_t j) {
    return {matrix.data + i * matrix.row + j * matrix.col, matrix.row, matrix.col};
}

class Matmul {
public:
    Matmul(float* c_mn, size_t ldc, View a_mk, View b_kn, const float* bias_n, bool accumulate, size_t M, size_t N,
           size_t K, Precision precision)
        : c_mn_(c_mn), ldc_(ldc), a_(a_mk), b_(b_kn), bias_n_(bias_n), accumulate_(accumulate), M_(M), N_(N), K_(K),
          precision_(precision == Precision::bf16 && uses_vdpbf16ps() ? Precision::bf16_pairs : precision) {}

    void run() const {
        const Scratch packed_a(in_place_ ? 0 : words(depth_) * rows_), packed_b(words(depth_) * nc_);
        for (size_t n = 0; n < N_; n += nc_)
            for (size_t k = 0; k < K_; k += depth_)
                for (size_t m = 0; m < M_; m += rows_) {
                    const Block block = {packed_a.data(), packed_b.data(), m, n, k, std::min(rows_, M_ - m),
                                         std::min(nc_, N_ - n), std::min(depth_, K_ - k)};
                    pack(block);
                    multiply(block);
                }
    }

private:
    struct Block {  // M rows from m0 on and so on
        float *packed_a, *packed_b;
        size_t m0, n0, k0, M, N, K;
    };

    size_t words(size_t k) const { return paired_ ? (k + 1) / 2 : k; }  // that k terms of a sum take

    template <class Body>
    void for_units(size_t count, const Body& body) const {
        if (!small_) return parallel_for(count, body);
        for (size_t i = 0; i < count; ++i) body(i);
    }

    // Each thread reads long rows: a strip of k, or some columns or rows if those are contiguous along k.
    void pack(const Block& block) const {
        const size_t jobs_b = block.m0 > 0    ? 0
                              : b_.col == 1   ? blocks_of(kc_, STRIP)
                                              : blocks_of(block.N, PACK_PANELS * NR_);
        const size_t jobs_a = in_place_ ? 0 : a_.row == 1 ? blocks_of(kc_, STRIP) : blocks_of(block.M, mc_);
        const size_t jobs = jobs_a + jobs_b;
        for_units(blocks_of(block.K, kc_) * jobs, [&](size_t i) {
            const size_t k = i / jobs * kc_, job = i % jobs;
            job < jobs_b ? pack_b(block, k, job) : pack_a(block, k, job - jobs_b);
        });
    }

    void pack_b(const Block& block, size_t k, size_t job) const {
        const bool strip = b_.col == 1;
        const size_t kc = std::min(kc_, block.K - k), first = strip ? job * STRIP : 0, n = strip ? 0 : job * PACK_PANELS * NR_;
        if (first >= kc) return;
        const size_t K = strip ? std::min(STRIP, kc - first) : kc;
        const size_t N = strip ? block.N : std::min(PACK_PANELS * NR_, block.N - n);
        kernels_.pack_b(block.packed_b + words(k) * nc_ + n * words(kc) + words(first) * NR_, NR_ * words(kc),
                        part(b_, block.k0 + k + first, block.n0 + n), K, N, precision_);
    }

    void pack_a(const Block& block, size_t k, size_t job) const {
        const bool strip = a_.row == 1;
        const size_t kc = std::min(kc_, block.K - k), first = strip ? job * STRIP : 0, m = strip ? 0 : job * mc_;
        if (first >= kc) return;
        const size_t K = strip ? std::min(STRIP, kc - first) : kc, M = strip ? block.M : std::min(mc_, block.M - m);
        float* to = block.packed_a + words(k) * rows_ + m * words(kc);
        const View a = part(a_, block.m0 + m, block.k0 + k + first);
        if (!by_rows_) return kernels_.pack_a(to + words(first) * MR_, MR_ * words(kc), a, M, K, precision_);
        for (size_t i = 0; i < M; ++i) kernels_.round(to + i * words(kc), a.data + i * a.row, kc, precision_);
    }

    void multiply(const Block& block) const {
        const auto macrokernel = paired_ ? bf16_pairs().macrokernel : kernels_.macrokernel;
        const size_t units_n = blocks_of(block.N, unit_cols_);
        for_units(blocks_of(block.M, mc_) * units_n, [&](size_t i) {
            const size_t m = i / units_n * mc_, n = i % units_n * unit_cols_;
            for (size_t k = 0; k < block.K; k += kc_) {
                const size_t kc = std::min(kc_, block.K - k);
                const float* packed = block.packed_a + words(k) * rows_ + m * words(kc);
                const View a = in_place_  ? View{part(a_, block.m0 + m, block.k0 + k).data, a_.row, 1}
                               : by_rows_ ? View{packed, words(kc), 1}
                                          : View{packed, 1, MR_};
                const bool first = block.k0 + k == 0;
                macrokernel(c_mn_ + (block.m0 + m) * ldc_ + block.n0 + n, ldc_, a.data,
                            MR_ * (in_place_ ? a_.row : words(kc)), a.row, a.col,
                            block.packed_b + words(k) * nc_ + n * words(kc),
                            first && bias_n_ ? bias_n_ + block.n0 + n : nullptr, accumulate_ || !first,
                            std::min(mc_, block.M - m), std::min(unit_cols_, block.N - n), words(kc));
            }
        });
    }

    float* c_mn_;
    size_t ldc_;
    View a_, b_;
    const float* bias_n_;
    bool accumulate_;
    size_t M_, N_, K_;
    Precision precision_;

    const Gemm& kernels_ = gemm_kernels();
    const size_t MR_ = kernels_.MR, NR_ = kernels_.NR;
    const bool paired_ = precision_ == Precision::bf16_pairs;
    const bool in_place_ = a_.col == 1 && precision_ == Precision::fp32;  // contiguous rows of A are not packed,
    const bool by_rows_ = a_.col == 1 && a_.row != 1;                     // or copied as rows to be rounded
    const size_t kc_ = round_up(blocks_of(K_, blocks_of(K_, KC)), paired_ ? 2 : 1);
    const size_t nc_ = std::min(NC, round_up(N_, NR_));
    const size_t rows_ = in_place_ ? M_ : round_up(std::min(PACKED_ROWS, M_), MR_);  // of A per block
    const size_t depth_ =  // terms of k per block
        std::min(std::max<size_t>(1, PACKED_FLOATS / (nc_ + (in_place_ ? 0 : rows_)) / kc_) * kc_, K_);
    const size_t mc_ = block_size(rows_, MR_, std::max(blocks_of(rows_, MC), std::min(UNITS, rows_ / MC)), MR_);
    const size_t unit_cols_ = block_size(nc_, NR_, blocks_of(UNITS, blocks_of(rows_, mc_)), MIN_PANELS * NR_);
    const bool small_ = rows_ * nc_ * depth_ < SMALL * 16;  // for one thread
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

void gemm(float* c_mn, size_t ldc, View a_mk, View b_kn, const float* bias_n, bool accumulate, size_t M, size_t N,
          size_t K, Precision precision) {
    if (M == 0 || N == 0) return;
    if (K == 0) return add_bias_only(c_mn, ldc, bias_n, accumulate, M, N);
    if (M <= FEW_ROWS && precision == Precision::fp32 && b_kn.row == 1 && a_mk.col == 1)
        return multiply_few_rows(c_mn, ldc, a_mk, b_kn, bias_n, accumulate, M, N, K);
    Matmul(c_mn, ldc, a_mk, b_kn, bias_n, accumulate, M, N, K, precision).run();
}

}  // namespace chainrule
