// Packing, rounding and the small kernels of GEMM, on one thread.        Explained in docs/understand/kernels.md
#include "gemm/gemm.hpp"

#include "gemm/macrokernel.hpp"
#include "simd/map.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

typedef float Four __attribute__((vector_size(16)));
typedef float FourMemory __attribute__((vector_size(16), aligned(alignof(float)), may_alias));

// The nearest bf16 (8 bits of mantissa), ties to even, as a float. NaN stays NaN.
INLINE Vec as_bf16(Vec x) {
    const Int u = bits(x);
    const Int rounded = u + fill_int(0x7fff) + (shift_right(u, 16) & fill_int(1));
    return select(x == x, from_bits(rounded & fill_int(-0x10000)), x);
}

// The nearest fp16 (11 bits; steps of 2^-24 below 2^-14; infinity from 65520), ties to even, as a float.
INLINE Vec as_fp16(Vec x) {
    const Int u = bits(x), sign = u & fill_int(INT32_MIN);
    const Vec size = abs(x);
    const Int rounded = (bits(size) + fill_int(0xfff) + (shift_right(u, 13) & fill_int(1))) & fill_int(-0x2000);
    const Vec small = (size + fill(0.5f)) - fill(0.5f);  // a float between ½ and 1 has steps of 2^-24
    Vec y = select(size < fill(6.103515625e-5f), small, from_bits(rounded));
    y = select(size >= fill(65520.0f), fill(__builtin_inff()), y);
    return select(x == x, from_bits(bits(y) | sign), x);
}

uint32_t bf16(float x) {  // the sixteen bits of the nearest bf16
    uint32_t u;
    __builtin_memcpy(&u, &x, sizeof u);
    return x == x ? (u + 0x7fff + (u >> 16 & 1)) >> 16 : u >> 16 | 0x40;  // keep NaN a NaN without its low bits
}

// Two terms in one word, the even one in the low half; the next ones are `step` floats on.
INLINE void join(float* words_n, const float* even_n, const float* odd_n, size_t step, size_t n) {
    for (size_t i = 0; i < n; ++i) {
        const uint32_t word = bf16(even_n[i * step]) | bf16(odd_n[i * step]) << 16;
        __builtin_memcpy(words_n + i, &word, sizeof word);
    }
}

void round(float* y_n, const float* x_n, size_t n, Precision precision) {
    if (precision == Precision::bf16_pairs) {
        const float last[2] = {n % 2 ? x_n[n - 1] : 0.0f, 0.0f};
        join(y_n, x_n, x_n + 1, 2, n / 2);
        return join(y_n + n / 2, last, last + 1, 2, n % 2);
    }
    if (precision == Precision::bf16) return map<as_bf16>(y_n, x_n, n);
    if (precision == Precision::fp16) return map<as_fp16>(y_n, x_n, n);
    for (size_t i = 0; i < n; ++i) y_n[i] = x_n[i];
}

// out[j + 4 k] = in[j in_row + k] for 4 × 4 floats
INLINE void transpose4(float* out, size_t out_row, const float* in, size_t in_row) {
    const Four a = *reinterpret_cast<const FourMemory*>(in), b = *reinterpret_cast<const FourMemory*>(in + in_row);
    const Four c = *reinterpret_cast<const FourMemory*>(in + 2 * in_row);
    const Four d = *reinterpret_cast<const FourMemory*>(in + 3 * in_row);
    const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *reinterpret_cast<FourMemory*>(out) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *reinterpret_cast<FourMemory*>(out + out_row) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *reinterpret_cast<FourMemory*>(out + 2 * out_row) = __builtin_shufflevector(AB, CD, 0, 1, 4, 5);
    *reinterpret_cast<FourMemory*>(out + 3 * out_row) = __builtin_shufflevector(AB, CD, 2, 3, 6, 7);
}

// The last panel, with fewer than COLS columns: a vector at a time, since a small matrix has few others.
template <size_t COLS>
void pack_last_panel(float* out, const float* in, size_t in_k, size_t K, size_t used) {
    for (size_t k = 0; k < K; ++k)
        for (size_t j = 0; j < COLS; j += LANES) {
            const Vec row = j < used ? load_next(in + k * in_k + j, used - j) : fill(0);
            store_next(out + k * COLS + j, row, COLS - j);
        }
}

// A panel of COLS columns of B, or of Aᵀ; the first `used` exist, the rest are 0: out[k COLS + j] = in[k in_k + j in_j].
template <size_t COLS>
void pack_panel(float* out, const float* in, size_t in_k, size_t in_j, size_t K, size_t used) {
    size_t k = 0;
    if (used == COLS && in_j == 1) {
        for (; k < K; ++k) __builtin_memcpy(out + k * COLS, in + k * in_k, COLS * sizeof(float));
    } else if (used == COLS && in_k == 1 && COLS % 4 == 0) {
        const size_t whole = K - K % 4;
        for (size_t j = 0; j < COLS; j += 4)  // four rows at a time: more may share a set of the L1 cache
            for (k = 0; k < whole; k += 4) transpose4(out + k * COLS + j, COLS, in + j * in_j + k, in_j);
    }
    if (in_j == 1 && used < COLS) return pack_last_panel<COLS>(out, in, in_k, K, used);
    for (; k < K; ++k)
        for (size_t j = 0; j < COLS; ++j) out[k * COLS + j] = j < used ? in[k * in_k + j * in_j] : 0.0f;
}

// Prefetch a part of the next panels: a row serves many of them, so the hardware prefetcher does not see what comes next.
// Into the L2 cache: rows a power of two apart would drive each other out of L1.
INLINE void prefetch_part(const float* in, size_t in_k, size_t in_j, size_t K, size_t J) {
    const size_t step_k = in_k == 1 ? LANES : 1, step_j = in_j == 1 ? LANES : 1;
    for (size_t k = 0; k < K; k += step_k)
        for (size_t j = 0; j < J; j += step_j) __builtin_prefetch(in + k * in_k + j * in_j, 0, 2);
}

// Pack a strip of k for all panels, then the next: a cache line that serves several panels is then read once. A strip is
// at most 64 KB, a part of the L2 cache, and at most STRIP rows: rows a power of two apart share few sets of the L1 cache.
constexpr size_t STRIP = 16, AHEAD = 4;

template <size_t COLS>
void pack(float* packed, size_t panel, const float* in, size_t in_k, size_t in_j, size_t K, size_t J,
          Precision precision) {
    const size_t fitting = (1 << 14) / (J + 1), strip = fitting < 8 ? 8 : fitting > STRIP ? STRIP : fitting - fitting % 4;
    for (size_t k = 0; k < K; k += strip) {
        const size_t depth = K - k < strip ? K - k : strip;
        for (size_t j = 0; j < J; j += COLS) {
            const size_t width = (J + COLS - 1) / COLS * COLS, ahead = j + AHEAD * COLS;
            const size_t next_k = ahead < width ? k : k + strip, next_j = ahead < width ? ahead : ahead - width;
            if (next_k < K && next_j < J)
                prefetch_part(in + next_k * in_k + next_j * in_j, in_k, in_j, K - next_k < strip ? K - next_k : strip,
                              J - next_j < COLS ? J - next_j : COLS);
            float rows[(STRIP + 1) * COLS];
            const bool pairs = precision == Precision::bf16_pairs;
            float* const out = packed + j / COLS * panel + (pairs ? k / 2 : k) * COLS;
            float* const to = pairs ? rows : out;
            pack_panel<COLS>(to, in + k * in_k + j * in_j, in_k, in_j, depth, J - j < COLS ? J - j : COLS);
            if (pairs) {
                for (size_t i = 0; i < COLS; ++i) rows[depth * COLS + i] = 0;  // the partner of the last of an odd number
                for (size_t i = 0; i < depth; i += 2)
                    join(out + i / 2 * COLS, rows + i * COLS, rows + (i + 1) * COLS, 1, COLS);
            } else if (precision != Precision::fp32) {
                round(out, out, depth * COLS, precision);
            }
        }
    }
}

void pack_a(float* packed, size_t panel, View a_mk, size_t M, size_t K, Precision precision) {
    pack<MR>(packed, panel, a_mk.data, a_mk.col, a_mk.row, K, M, precision);
}

void pack_b(float* packed, size_t panel, View b_kn, size_t K, size_t N, Precision precision) {
    pack<NR>(packed, panel, b_kn.data, b_kn.row, b_kn.col, K, N, precision);
}

// Dot products of a row of A with COLS rows of W, each in sixteen partial sums.
template <size_t COLS>
void dots(float* c, const float* a, const float* w, size_t w_row, const float* bias, bool accumulate, size_t K) {
    const size_t whole = K - K % LANES;
    Vec total[COLS];
#pragma GCC unroll 4
    for (size_t j = 0; j < COLS; ++j) total[j] = fill(0);
    for (size_t k = 0; k < whole; k += LANES) {
        const Vec row = load(a + k);
#pragma GCC unroll 4
        for (size_t j = 0; j < COLS; ++j) total[j] = fma(row, load(w + j * w_row + k), total[j]);
    }
    for (size_t j = 0; j < COLS; ++j) {
        float out = sum(total[j]);
        for (size_t k = whole; k < K; ++k) out += a[k] * w[j * w_row + k];
        if (bias) out += bias[j];
        c[j] = accumulate ? c[j] + out : out;
    }
}

// Four columns at a time; the grouping changes no sum.
void dot_rows(float* c_mn, size_t ldc, const float* a, size_t a_row, const float* w_nk, size_t w_row,
              const float* bias_n, bool accumulate, size_t M, size_t N, size_t K) {
    for (size_t n = 0; n < N;) {
        const size_t cols = N - n < 4 ? 1 : 4;
        const auto dot = cols == 4 ? dots<4> : dots<1>;
        const float* bias = bias_n ? bias_n + n : nullptr;
        for (size_t m = 0; m < M; ++m)
            dot(c_mn + m * ldc + n, a + m * a_row, w_nk + n * w_row, w_row, bias, accumulate, K);
        n += cols;
    }
}

void column_sums(float* out_c, const float* x_rc, size_t ldx, size_t R, size_t C) {
    for (size_t c = 0; c < C; c += LANES) {
        Vec total = load_next(out_c + c, C - c);
        for (size_t r = 0; r < R; ++r) total = total + load_next(x_rc + r * ldx + c, C - c);
        store_next(out_c + c, total, C - c);
    }
}

}  // namespace

const Gemm gemm_kernels = {MR, NR, pack_a, pack_b, round, macrokernel<fma>, dot_rows, column_sums};

}  // namespace chainrule::CHAINRULE_ISA
