#include "decode/panels.hpp"

#include "decode/halves.hpp"
#include "gemm/tile.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

constexpr size_t VECS = PANEL / LANES;

// A format unpacks GROUP inputs of a panel: use(k, v, weights of the outputs from v LANES on), for each k in order.
struct Fp32 {
    static constexpr size_t WORDS = panel_words(Format::fp32, GROUP);

    template <class Use>
    static INLINE void unpack(const int32_t* words, Use use) {
        for (size_t k = 0; k < GROUP; ++k)
#pragma GCC unroll 2
            for (size_t v = 0; v < VECS; ++v) use(k, v, from_bits(load_int(words + k * PANEL + v * LANES)));
    }
};

template <Format format>
struct Halves {  // bf16 or fp16
    static constexpr size_t WORDS = panel_words(format, GROUP);
    static INLINE Vec lower(Int pair) { return format == Format::bf16 ? lower_bf16(pair) : lower_fp16(pair); }
    static INLINE Vec upper(Int pair) { return format == Format::bf16 ? upper_bf16(pair) : upper_fp16(pair); }

    template <class Use>
    static INLINE void unpack(const int32_t* words, Use use) {
        for (size_t k = 0; k < GROUP; k += 2) {
            Int pair[VECS];
#pragma GCC unroll 2
            for (size_t v = 0; v < VECS; ++v) pair[v] = load_int(words + k / 2 * PANEL + v * LANES);
#pragma GCC unroll 2
            for (size_t v = 0; v < VECS; ++v) use(k, v, lower(pair[v]));
#pragma GCC unroll 2
            for (size_t v = 0; v < VECS; ++v) use(k + 1, v, upper(pair[v]));
        }
    }
};

template <int BITS>
struct Integers {
    static constexpr size_t PER_WORD = 32 / BITS;
    static constexpr size_t WORDS = panel_words(BITS == 8 ? Format::int8 : Format::int4, GROUP);

    template <class Use>
    static INLINE void unpack(const int32_t* words, Use use) {
        const Int pair = load_int(words);
        const Vec scale[VECS] = {lower_bf16(pair), upper_bf16(pair)};
        const Vec middle = fill(-(1 << (BITS - 1)));
        const Vec offset[VECS] = {scale[0] * middle, scale[1] * middle};
        words += PANEL / 2;
        for (size_t k = 0; k < GROUP; k += PER_WORD, words += PANEL)
#pragma GCC unroll 2
            for (size_t v = 0; v < VECS; ++v) {  // the outer loop, since sixteen registers cannot hold both halves
                const Int word = load_int(words + v * LANES);
#pragma GCC unroll 8
                for (size_t i = 0; i < PER_WORD; ++i) {
                    Int code = i == 0 ? word : shift_right(word, BITS * static_cast<int>(i));
                    if (i + 1 < PER_WORD) code = code & fill_int((1 << BITS) - 1);
                    use(k + i, v, fma(to_float(code), scale[v], offset[v]));
                }
            }
    }
};

// One row: the weights go from memory through registers into the sums.
template <class F>
void one_row(float* y_p, const float* x_k, const int32_t* panel, size_t K) {
    Vec y[VECS] = {load(y_p), load(y_p + LANES)};
    for (size_t k0 = 0; k0 < K; k0 += GROUP, panel += F::WORDS) {
        if (F::WORDS < GROUP * PANEL / 2) prefetch_ahead<F::WORDS>(panel);  // wider numbers come in time by themselves
        F::unpack(panel, [&](size_t k, size_t v, Vec w) __attribute__((always_inline)) {
            y[v] = fma(fill(x_k[k0 + k]), w, y[v]);
        });
    }
    store(y_p, y[0]);
    store(y_p + LANES, y[1]);
}

template <size_t ROWS>
void tile_rows(float* y, size_t ldy, const float* x, size_t ldx, const float* b, size_t K) {
    for (size_t column = 0; column < PANEL; column += NR) {
        Tile<ROWS> tile;
        for_vectors(tile, [&](size_t i, size_t v, Vec& sum) { sum = load(y + i * ldy + column + v); });
        multiply(tile, x, ldx, 1, b + column, PANEL, K);
        for_vectors(tile, [&](size_t i, size_t v, Vec& sum) { store(y + i * ldy + column + v, sum); });
    }
}

// Few rows take the whole width of the panel at once: more independent sums, and b is read once.
template <size_t ROWS>
void wide_rows(float* y_rp, size_t ldy, const float* x_rk, size_t ldx, const float* b_kp, size_t K) {
    Vec y[ROWS][VECS];
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t v = 0; v < VECS; ++v) y[i][v] = load(y_rp + i * ldy + v * LANES);
    for (size_t k = 0; k < K; ++k)
#pragma GCC unroll 2
        for (size_t v = 0; v < VECS; ++v) {
            const Vec b = load(b_kp + k * PANEL + v * LANES);
#pragma GCC unroll 16
            for (size_t i = 0; i < ROWS; ++i) y[i][v] = fma(fill(x_rk[i * ldx + k]), b, y[i][v]);
        }
    for (size_t i = 0; i < ROWS; ++i)
        for (size_t v = 0; v < VECS; ++v) store(y_rp + i * ldy + v * LANES, y[i][v]);
}

template <size_t ROWS>
void last_rows(float* y, size_t ldy, const float* x, size_t ldx, const float* b, size_t R, size_t K) {
    if constexpr (ROWS > 1) {
        if (R < ROWS) return last_rows<ROWS - 1>(y, ldy, x, ldx, b, R, K);
    }
    constexpr bool wide = ROWS * VECS <= MR * NR_VECS;  // fits where a whole tile fits
    wide ? wide_rows<ROWS>(y, ldy, x, ldx, b, K) : tile_rows<ROWS>(y, ldy, x, ldx, b, K);
}

void accumulate(float* y_rp, size_t ldy, const float* x_rk, size_t ldx, const float* b_kp, size_t R, size_t K) {
    size_t r = 0;
    for (; r + MR <= R; r += MR) tile_rows<MR>(y_rp + r * ldy, ldy, x_rk + r * ldx, ldx, b_kp, K);
    if (r < R) last_rows<MR - 1>(y_rp + r * ldy, ldy, x_rk + r * ldx, ldx, b_kp, R - r, K);
}

// Many rows: unpack a part of the panel that fits the L1 cache, and use it for all of them.
template <class F>
void multiply_format(float* y_rp, const float* x_rk, size_t ldx, const int32_t* panel, size_t R, size_t K) {
    constexpr size_t PART = 4 * GROUP;
    for (size_t i = 0; i < R * PANEL; ++i) y_rp[i] = 0;
    if (R == 1) return one_row<F>(y_rp, x_rk, panel, K);
    alignas(64) float part_kp[PART * PANEL];
    for (size_t k0 = 0; k0 < K; k0 += PART) {
        const size_t count = K - k0 < PART ? K - k0 : PART;
        for (size_t g = 0; g < count; g += GROUP, panel += F::WORDS)
            F::unpack(panel, [&](size_t k, size_t v, Vec w) __attribute__((always_inline)) {
                store(part_kp + (g + k) * PANEL + v * LANES, w);
            });
        accumulate(y_rp, PANEL, x_rk + k0, ldx, part_kp, R, count);
    }
}

template <class F>
void column_format(float* w_k, const int32_t* panel, size_t output, size_t K) {
    float group_kp[GROUP * PANEL];
    for (size_t k0 = 0; k0 < K; k0 += GROUP, panel += F::WORDS) {
        F::unpack(panel, [&](size_t k, size_t v, Vec w) __attribute__((always_inline)) {
            store(group_kp + k * PANEL + v * LANES, w);
        });
        for (size_t k = 0; k < GROUP; ++k) w_k[k0 + k] = group_kp[k * PANEL + output];
    }
}

void multiply_panel(float* y_rp, const float* x_rk, size_t ldx, const int32_t* panel, Format format, size_t R,
                    size_t K) {
    switch (format) {
        case Format::fp32: return multiply_format<Fp32>(y_rp, x_rk, ldx, panel, R, K);
        case Format::bf16: return multiply_format<Halves<Format::bf16>>(y_rp, x_rk, ldx, panel, R, K);
        case Format::fp16: return multiply_format<Halves<Format::fp16>>(y_rp, x_rk, ldx, panel, R, K);
        case Format::int8: return multiply_format<Integers<8>>(y_rp, x_rk, ldx, panel, R, K);
        default: return multiply_format<Integers<4>>(y_rp, x_rk, ldx, panel, R, K);
    }
}

void column(float* w_k, const int32_t* panel, Format format, size_t output, size_t K) {
    switch (format) {
        case Format::fp32: return column_format<Fp32>(w_k, panel, output, K);
        case Format::bf16: return column_format<Halves<Format::bf16>>(w_k, panel, output, K);
        case Format::fp16: return column_format<Halves<Format::fp16>>(w_k, panel, output, K);
        case Format::int8: return column_format<Integers<8>>(w_k, panel, output, K);
        default: return column_format<Integers<4>>(w_k, panel, output, K);
    }
}

}  // namespace

const Panels panels = {multiply_panel, accumulate, column};

}  // namespace chainrule::CHAINRULE_ISA
