// The pieces of a matrix product on one thread.        Explained step by step in docs/kernels.md
#include "gemm.hpp"

#include "tile.hpp"

namespace chainrule::CHAINRULE_LEVEL {
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

template <Vec as(Vec)>
void round_each(float* y_n, const float* x_n, size_t n) {
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES) store(y_n + i, as(load(x_n + i)));
    if (whole < n) store_some(y_n + whole, as(load_some(x_n + whole, n - whole)), n - whole);
}

void round(float* y_n, const float* x_n, size_t n, Precision precision) {
    if (precision == Precision::bf16) return round_each<as_bf16>(y_n, x_n, n);
    if (precision == Precision::fp16) return round_each<as_fp16>(y_n, x_n, n);
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

// One panel of WIDE columns (of B, or of Aᵀ), `used` of them real: out[k WIDE + j] = in[k in_k + j in_j].
template <size_t WIDE>
void pack_panel(float* out, const float* in, size_t in_k, size_t in_j, size_t K, size_t used) {
    size_t k = 0;
    if (used == WIDE && in_j == 1) {
        for (; k < K; ++k) __builtin_memcpy(out + k * WIDE, in + k * in_k, WIDE * sizeof(float));
    } else if (used == WIDE && in_k == 1 && WIDE % 4 == 0) {
        for (; k + 4 <= K; k += 4)
            for (size_t j = 0; j < WIDE; j += 4) transpose4(out + k * WIDE + j, WIDE, in + j * in_j + k, in_j);
    }
    for (; k < K; ++k)
        for (size_t j = 0; j < WIDE; ++j) out[k * WIDE + j] = j < used ? in[k * in_k + j * in_j] : 0.0f;
}

// Ask for memory that the next strip of k will read: as a row is used by many panels, the CPU does not foresee the next.
INLINE void prefetch_strip(const float* in, size_t in_k, size_t in_j, size_t K, size_t J) {
    const size_t step_k = in_k == 1 ? LANES : 1, step_j = in_j == 1 ? LANES : 1;
    for (size_t k = 0; k < K; k += step_k)
        for (size_t j = 0; j < J; j += step_j) __builtin_prefetch(in + k * in_k + j * in_j);
}

// A strip of k at a time, for all panels: a line of memory that serves several panels is then read once. A strip is at
// most 64 KB, a part of the second-level cache.
template <size_t WIDE>
void pack(float* packed, size_t panel, const float* in, size_t in_k, size_t in_j, size_t K, size_t J,
          Precision precision) {
    const size_t fitting = (1 << 14) / (J + 1), strip = fitting < 8 ? 8 : fitting > 16 ? 16 : fitting - fitting % 4;
    for (size_t k = 0; k < K; k += strip) {
        const size_t depth = K - k < strip ? K - k : strip, next = k + strip;
        if (next < K) prefetch_strip(in + next * in_k, in_k, in_j, K - next < strip ? K - next : strip, J);
        for (size_t j = 0; j < J; j += WIDE) {
            float* out = packed + j / WIDE * panel + k * WIDE;
            pack_panel<WIDE>(out, in + k * in_k + j * in_j, in_k, in_j, depth, J - j < WIDE ? J - j : WIDE);
            if (precision != Precision::fp32) round(out, out, depth * WIDE, precision);
        }
    }
}

void pack_a(float* packed, size_t panel, View a_mk, size_t M, size_t K, Precision precision) {
    pack<TILE_ROWS>(packed, panel, a_mk.data, a_mk.col, a_mk.row, K, M, precision);
}

void pack_b(float* packed, size_t panel, View b_kn, size_t K, size_t N, Precision precision) {
    pack<TILE_COLS>(packed, panel, b_kn.data, b_kn.row, b_kn.col, K, N, precision);
}

// A tile of ROWS rows: the sum over k in registers, then the epilogue (bias, the old value) on the way out.
template <size_t ROWS>
void tile_product(float* c, size_t ldc, const float* a, size_t a_row, size_t a_k, const float* b, const float* bias,
                  bool accumulate, size_t cols, size_t K) {
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t v = 0; v < TILE_VECS; ++v) __builtin_prefetch(c + i * ldc + v * LANES, 1);
    Tile<ROWS> tile;
    clear(tile);
    multiply(tile, a, a_row, a_k, b, TILE_COLS, K);
    if (cols == TILE_COLS) {
#pragma GCC unroll 16
        for (size_t i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
            for (size_t v = 0; v < TILE_VECS; ++v) {
                float* to = c + i * ldc + v * LANES;
                Vec out = tile.c[i][v];
                if (bias) out = out + load(bias + v * LANES);
                if (accumulate) out = load(to) + out;
                store(to, out);
            }
        return;
    }
    float row[TILE_COLS];
    for (size_t i = 0; i < ROWS; ++i) {
        for (size_t v = 0; v < TILE_VECS; ++v) store(row + v * LANES, tile.c[i][v]);
        for (size_t j = 0; j < cols; ++j) {
            const float out = row[j] + (bias ? bias[j] : 0.0f);
            c[i * ldc + j] = accumulate ? c[i * ldc + j] + out : out;
        }
    }
}

using TileProduct = void(float*, size_t, const float*, size_t, size_t, const float*, const float*, bool, size_t, size_t);

// The kernel for the last rows: ROWS is 1 .. TILE_ROWS - 1.
template <size_t ROWS = TILE_ROWS - 1>
TileProduct* rest_product(size_t rows) {
    if constexpr (ROWS == 0) {
        return nullptr;
    } else {
        return rows == ROWS ? tile_product<ROWS> : rest_product<ROWS - 1>(rows);
    }
}

// A panel of B (K × TILE_COLS) stays in the first cache while the rows of A pass by; A comes from the second one.
void multiply(float* c_mn, size_t ldc, const float* a, size_t a_panel, size_t a_row, size_t a_k, const float* b_packed,
              const float* bias_n, bool accumulate, size_t M, size_t N, size_t K) {
    const size_t whole = M - M % TILE_ROWS;
    TileProduct* const rest = rest_product<>(M - whole);
    for (size_t n = 0; n < N; n += TILE_COLS) {
        const size_t cols = N - n < TILE_COLS ? N - n : TILE_COLS;
        const float* b = b_packed + n * K;
        const float* bias = bias_n ? bias_n + n : nullptr;
        const float* panel = a;
        float* c = c_mn + n;
        for (size_t m = 0; m < whole; m += TILE_ROWS, panel += a_panel, c += TILE_ROWS * ldc)
            tile_product<TILE_ROWS>(c, ldc, panel, a_row, a_k, b, bias, accumulate, cols, K);
        if (rest) rest(c, ldc, panel, a_row, a_k, b, bias, accumulate, cols, K);
    }
}

// ROWS rows of A against COLS rows of W: sixteen partial sums for each of the products.
template <size_t ROWS, size_t COLS>
INLINE void dots(float* c, size_t ldc, const float* a, size_t a_row, const float* w, size_t w_row, const float* bias,
                 bool accumulate, size_t K) {
    const size_t whole = K - K % LANES;
    Vec total[ROWS][COLS];
#pragma GCC unroll 4
    for (size_t i = 0; i < ROWS; ++i)
#pragma GCC unroll 4
        for (size_t j = 0; j < COLS; ++j) total[i][j] = fill(0);
    for (size_t k = 0; k < whole; k += LANES) {
        Vec row[ROWS];
#pragma GCC unroll 4
        for (size_t i = 0; i < ROWS; ++i) row[i] = load(a + i * a_row + k);
#pragma GCC unroll 4
        for (size_t j = 0; j < COLS; ++j) {
            const Vec weights = load(w + j * w_row + k);
#pragma GCC unroll 4
            for (size_t i = 0; i < ROWS; ++i) total[i][j] = fma(row[i], weights, total[i][j]);
        }
    }
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t j = 0; j < COLS; ++j) {
            float out = sum(total[i][j]);
            for (size_t k = whole; k < K; ++k) out += a[i * a_row + k] * w[j * w_row + k];
            if (bias) out += bias[j];
            c[i * ldc + j] = accumulate ? c[i * ldc + j] + out : out;
        }
}

// The grouping of rows and columns changes no sum: each product has its own sixteen.
void dot_rows(float* c_mn, size_t ldc, const float* a, size_t a_row, const float* w_nk, size_t w_row,
              const float* bias_n, bool accumulate, size_t M, size_t N, size_t K) {
    for (size_t n = 0; n < N;) {
        const size_t cols = N - n < 4 ? 1 : 4;
        const float* w = w_nk + n * w_row;
        const float* bias = bias_n ? bias_n + n : nullptr;
        for (size_t m = 0; m < M; ++m) {
            const auto product = cols == 4 ? dots<1, 4> : dots<1, 1>;
            product(c_mn + m * ldc + n, ldc, a + m * a_row, a_row, w, w_row, bias, accumulate, K);
        }
        n += cols;
    }
}

void column_sums(float* out_c, const float* x_rc, size_t ldx, size_t R, size_t C) {
    const size_t whole = C - C % LANES;
    for (size_t c = 0; c < whole; c += LANES) {
        Vec total = load(out_c + c);
        for (size_t r = 0; r < R; ++r) total = total + load(x_rc + r * ldx + c);
        store(out_c + c, total);
    }
    for (size_t c = whole; c < C; ++c)
        for (size_t r = 0; r < R; ++r) out_c[c] += x_rc[r * ldx + c];
}

}  // namespace

const Gemm gemm_kernels = {TILE_ROWS, TILE_COLS, pack_a, pack_b, round, multiply, dot_rows, column_sums};

}  // namespace chainrule::CHAINRULE_LEVEL
