// VPDPBUSD (AVX-512 VNNI) multiplies and adds four pairs of bytes in each lane. It is not part of the avx512 ISA here:
// whether the CPU has it is tested at run time (blocks.cpp).
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512vnni")  // before any header, so that all of this file is compiled alike
#define HAS_VPDPBUSD
#endif
#include "decode/blocks.hpp"

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

constexpr size_t VECS = PANEL / LANES, FOURS = GROUP / 4;

// dots + products of four codes of a weight and four of x. Codes of x are signed. Those of a weight are signed if
// `wide`, and else from 0 to 15; where the instruction wants them unsigned, OFFSET has been added to the wide ones.
#if defined(HAS_VPDPBUSD)
constexpr int32_t OFFSET = 128;
template <bool wide>
INLINE Int add_products(Int dots, Int weights, int32_t x) {
    dots.part[0] = (IntRegister)_mm512_dpbusd_epi32((__m512i)dots.part[0], (__m512i)weights.part[0],
                                                    (__m512i)fill_int(x).part[0]);
    return dots;
}
#elif defined(__AVX2__)
// VPMADDUBSW wants unsigned times signed, and saturates at 2^15: |w| (±x) is at most 2 · 128 · 127.
constexpr int32_t OFFSET = 0;
template <bool wide>
INLINE __m256i products(__m256i weights, __m256i x) {
    const __m256i pairs = wide ? _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights))
                               : _mm256_maddubs_epi16(weights, x);
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
template <bool wide>
INLINE Int add_products(Int dots, Int weights, int32_t x) {
    const __m256i fours = _mm256_set1_epi32(x);
    __m256i part[2], sum[2];
    __builtin_memcpy(part, &weights, sizeof part);
    for (size_t i = 0; i < 2; ++i) sum[i] = products<wide>(part[i], fours);
    Int found;
    __builtin_memcpy(&found, sum, sizeof found);
    return dots + found;
}
#else
constexpr int32_t OFFSET = 128;
template <bool wide>
INLINE Int add_products(Int dots, Int weights, int32_t x) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const int32_t code = static_cast<int8_t>(x >> 8 * i);
        dots = dots + (shift_right(weights, 8 * i) & fill_int(0xff)) * fill_int(code);
    }
    return dots;
}
#endif

// The scales of the outputs from v LANES on: fp16, output j in the lower and j + 16 in the upper half of word j. The bits
// of a finite fp16, moved to those of a float32, are that number times 2^-112.
INLINE Vec scales(const int32_t* words, size_t v) {
    const Int pair = load_int(words), half = v ? pair : shift_left(pair, 16);
    const Vec size = from_bits(shift_right(half & fill_int(0x7fff0000), 3)) * fill(0x1p112f);
    return from_bits(bits(size) | (half & fill_int(static_cast<int32_t>(0x80000000))));
}

// A format gives the codes of inputs 4 i to 4 i + 3, in the four bytes of each lane, for the outputs from v LANES on. ZERO
// is the code of 0, or with LEASTS that of the least weight.
struct Q8_0 {
    static constexpr size_t WORDS = panel_words(Format::q8_0, GROUP);
    static constexpr bool WIDE = true, LEASTS = false;
    static constexpr int32_t ZERO = OFFSET;

    static INLINE Int codes(const int32_t* words, size_t v, size_t i) {
        const Int found = load_int(words + PANEL / 2 + i * PANEL + v * LANES);
        return OFFSET ? found ^ fill_int(static_cast<int32_t>(0x80808080)) : found;
    }
};

template <Format format>
struct Q4 {
    static constexpr size_t WORDS = panel_words(format, GROUP);
    static constexpr bool WIDE = false, LEASTS = format == Format::q4_1;
    static constexpr int32_t ZERO = LEASTS ? 0 : 8;

    static INLINE Int codes(const int32_t* words, size_t v, size_t i) {  // inputs from 16 on are in the upper halves
        const Int found = load_int(words + WORDS - FOURS / 2 * PANEL + i % (FOURS / 2) * PANEL + v * LANES);
        return (i < FOURS / 2 ? found : shift_right(found, 4)) & fill_int(0x0f0f0f0f);
    }
};
using Q4_0 = Q4<Format::q4_0>;
using Q4_1 = Q4<Format::q4_1>;

INLINE int32_t four(const Rounded& x, size_t i) {
    int32_t codes;
    __builtin_memcpy(&codes, x.code + 4 * i, sizeof codes);
    return codes;
}

// N vectors of outputs, from the one called `first` on, of ROWS rows.
template <class F, size_t ROWS, size_t N>
void add_rows(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* words, size_t first, size_t groups) {
    Vec y[ROWS][N];
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS; ++r)
#pragma GCC unroll 2
        for (size_t n = 0; n < N; ++n) y[r][n] = load(y_rp + r * PANEL + (first + n) * LANES);
    for (size_t g = 0; g < groups; ++g, words += F::WORDS) {
        Int dots[ROWS][N];
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; ++r)
#pragma GCC unroll 2
            for (size_t n = 0; n < N; ++n) dots[r][n] = fill_int(-F::ZERO * x_rg[r * ldx + g].sum);
#pragma GCC unroll 8
        for (size_t i = 0; i < FOURS; ++i)
#pragma GCC unroll 2
            for (size_t n = 0; n < N; ++n) {
                const Int weights = F::codes(words, first + n, i);
#pragma GCC unroll 4
                for (size_t r = 0; r < ROWS; ++r)
                    dots[r][n] = add_products<F::WIDE>(dots[r][n], weights, four(x_rg[r * ldx + g], i));
            }
#pragma GCC unroll 2
        for (size_t n = 0; n < N; ++n) {
            const Vec scale = scales(words, first + n), least = scales(words + F::LEASTS * PANEL / 2, first + n);
#pragma GCC unroll 4
            for (size_t r = 0; r < ROWS; ++r) {
                const Rounded& x = x_rg[r * ldx + g];
                y[r][n] = y[r][n] + to_float(dots[r][n]) * (scale * fill(x.scale));
                if (F::LEASTS) y[r][n] = y[r][n] + least * fill(x.scale * static_cast<float>(x.sum));
            }
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS; ++r)
#pragma GCC unroll 2
        for (size_t n = 0; n < N; ++n) store(y_rp + r * PANEL + (first + n) * LANES, y[r][n]);
}

constexpr size_t MOST = LANES == WIDTH ? 4 : 2;  // rows whose sums stay in registers

template <class F, size_t ROWS>
INLINE void tile(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* words, size_t R, size_t groups) {
    if constexpr (ROWS > 1) {
        if (R < ROWS) return tile<F, ROWS - 1>(y_rp, x_rg, ldx, words, R, groups);
    }
    if constexpr (ROWS == 1 || LANES == WIDTH) return add_rows<F, ROWS, VECS>(y_rp, x_rg, ldx, words, 0, groups);
    for (size_t v = 0; v < VECS; ++v) add_rows<F, ROWS, 1>(y_rp, x_rg, ldx, words, v, groups);
}

template <class F>
void multiply_format(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* panel, size_t R, size_t K) {
    // Groups of a panel that stay in the L1 cache while all rows use them: few of them if there are few rows, so that
    // the next ones are on their way meanwhile.
    const size_t PART = R <= 16 ? 2 : 8;
    for (size_t i = 0; i < R * PANEL; ++i) y_rp[i] = 0;
    for (size_t g = 0; g < K / GROUP; g += PART) {
        const size_t groups = K / GROUP - g < PART ? K / GROUP - g : PART;
        for (size_t r = 0; r < R; r += MOST)
            tile<F, MOST>(y_rp + r * PANEL, x_rg + r * ldx + g, ldx, panel + g * F::WORDS, R - r < MOST ? R - r : MOST,
                          groups);
    }
}

template <class F>
void column_format(float* w_k, const int32_t* panel, size_t output, size_t K) {
    const size_t v = output / LANES, lane = output % LANES;
    for (size_t k0 = 0; k0 < K; k0 += GROUP, panel += F::WORDS) {
        float scale[LANES], least[LANES] = {};
        store(scale, scales(panel, v));
        if (F::LEASTS) store(least, scales(panel + PANEL / 2, v));
        for (size_t i = 0; i < FOURS; ++i) {
            uint8_t codes[LANES][4];
            const Int found = F::codes(panel, v, i);
            __builtin_memcpy(codes, &found, sizeof codes);
            for (size_t b = 0; b < 4; ++b) {
                const int32_t code = F::WIDE && !OFFSET ? static_cast<int8_t>(codes[lane][b]) : codes[lane][b] - F::ZERO;
                w_k[k0 + 4 * i + b] = scale[lane] * static_cast<float>(code) + least[lane];
            }
        }
    }
}

INLINE Int larger(Int a, Int b) {
    for (size_t i = 0; i < PARTS; ++i) a.part[i] = a.part[i] > b.part[i] ? a.part[i] : b.part[i];
    return a;
}

INLINE void store_bytes(int8_t* to, Int v) {  // from -128 to 127
#if defined(__AVX512F__)
    _mm_storeu_si128((__m128i*)to, _mm512_maskz_cvtepi32_epi8(-1, (__m512i)v.part[0]));
#elif defined(__AVX2__)
    const __m256i halves = _mm256_packs_epi32((__m256i)v.part[0], (__m256i)v.part[1]);  // 16 bits, in quarters:
    const __m256i sorted = _mm256_permute4x64_epi64(halves, 0xd8);                      // 0 2 1 3
    _mm_storeu_si128((__m128i*)to, _mm_packs_epi16(_mm256_castsi256_si128(sorted), _mm256_extracti128_si256(sorted, 1)));
#else
    for (size_t i = 0; i < LANES; ++i) to[i] = static_cast<int8_t>(v.part[i / WIDTH][i % WIDTH]);
#endif
}

void round_groups(Rounded* x_g, const float* x_k, size_t K) {
    const float shift = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer, ties to even
    for (size_t k = 0; k < K; k += GROUP, ++x_g) {
        const Vec x[2] = {load(x_k + k), load(x_k + k + LANES)};
        int32_t lane[LANES], most = 0, sum = 0;  // the bits of a float without its sign are in order, NaN above all
        const Int sizes = larger(bits(abs(x[0])), bits(abs(x[1])));
        __builtin_memcpy(lane, &sizes, sizeof lane);
        for (size_t i = 0; i < LANES; ++i) most = lane[i] > most ? lane[i] : most;
        float largest;
        __builtin_memcpy(&largest, &most, sizeof largest);
        float inverse = 127 / largest;
        if (!(inverse <= __FLT_MAX__)) inverse = 0;  // of 0, of what is next to it, and of NaN
        Int code[2];
        for (size_t h = 0; h < 2; ++h) {
            code[h] = bits(x[h] * fill(inverse) + fill(shift)) - bits(fill(shift));
            store_bytes(x_g->code + h * LANES, code[h]);
        }
        const Int both = code[0] + code[1];
        __builtin_memcpy(lane, &both, sizeof lane);
        for (size_t i = 0; i < LANES; ++i) sum += lane[i];
        x_g->scale = largest / 127;
        x_g->sum = sum;
    }
}

void multiply(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* panel, Format format, size_t R, size_t K) {
    switch (format) {
        case Format::q8_0: return multiply_format<Q8_0>(y_rp, x_rg, ldx, panel, R, K);
        case Format::q4_0: return multiply_format<Q4_0>(y_rp, x_rg, ldx, panel, R, K);
        default: return multiply_format<Q4_1>(y_rp, x_rg, ldx, panel, R, K);
    }
}

void column(float* w_k, const int32_t* panel, Format format, size_t output, size_t K) {
    switch (format) {
        case Format::q8_0: return column_format<Q8_0>(w_k, panel, output, K);
        case Format::q4_0: return column_format<Q4_0>(w_k, panel, output, K);
        default: return column_format<Q4_1>(w_k, panel, output, K);
    }
}

}  // namespace

const Blocks blocks_of_isa = {round_groups, multiply, column};

}  // namespace chainrule::CHAINRULE_ISA
