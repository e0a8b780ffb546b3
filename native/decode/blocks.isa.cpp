// VPDPBUSD (AVX-512 VNNI) multiplies and adds four pairs of bytes in each lane. It is not part of the avx512 ISA here:
// whether the CPU has it is tested at run time (blocks.cpp).
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512vnni")  // before any header, so that all of this file is compiled alike
#define HAS_VPDPBUSD
#endif
#include "decode/blocks.hpp"

#include "decode/codes.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

constexpr size_t VECS = PANEL / LANES;

// dots + products of four codes of a weight and four of x. Codes of x are signed. Those of a weight are signed if
// `wide`, and else from 0 to 63; where the instruction wants them unsigned, OFFSET has been added to the wide ones.
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

INLINE int32_t four(const Rounded& x, size_t i) {
    int32_t codes;
    __builtin_memcpy(&codes, x.code + 4 * i, sizeof codes);
    return codes;
}

// N vectors of outputs, from the one called `first` on, of ROWS rows: products of group g of a block, in integers; of
// its inputs from 4 BEGIN to 4 END, which start at -ZERO times the sum of x.
template <class F, size_t BEGIN, size_t END, size_t ROWS, size_t N>
INLINE void multiply_fours(Int (&dots)[ROWS][N], const Rounded* x_r, size_t ldx, const int32_t* words, size_t g,
                           size_t first) {
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS; ++r)
#pragma GCC unroll 2
        for (size_t n = 0; n < N; ++n)
            dots[r][n] = fill_int(-F::ZERO * (F::HALVES ? x_r[r * ldx].half[2 * BEGIN / FOURS] : sum_of(x_r[r * ldx])));
#pragma GCC unroll 8
    for (size_t i = BEGIN; i < END; ++i)
#pragma GCC unroll 2
        for (size_t n = 0; n < N; ++n) {
            const Int weights = F::codes(words, g, first + n, i);
#pragma GCC unroll 4
            for (size_t r = 0; r < ROWS; ++r)
                dots[r][n] = add_products<F::WIDE>(dots[r][n], weights, four(x_r[r * ldx], i));
        }
}

// All of its inputs; each half with its small scale if the format has them.
template <class F, size_t ROWS, size_t N>
INLINE void multiply_group(Int (&dots)[ROWS][N], const Rounded* x_r, size_t ldx, const int32_t* words, size_t g,
                           size_t first) {
    if constexpr (!F::HALVES) return multiply_fours<F, 0, FOURS>(dots, x_r, ldx, words, g, first);
    Int upper[ROWS][N];
    multiply_fours<F, 0, FOURS / 2>(dots, x_r, ldx, words, g, first);
    multiply_fours<F, FOURS / 2, FOURS>(upper, x_r, ldx, words, g, first);
#pragma GCC unroll 2
    for (size_t n = 0; n < N; ++n) {
        const Int small[2] = {F::small(words, g, 0, first + n), F::small(words, g, 1, first + n)};
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; ++r) dots[r][n] = dots[r][n] * small[0] + upper[r][n] * small[1];
    }
}

template <class F, size_t ROWS, size_t N>
void add_rows(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* words, size_t first, size_t blocks) {
    Vec y[ROWS][N];
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS; ++r)
#pragma GCC unroll 2
        for (size_t n = 0; n < N; ++n) y[r][n] = load(y_rp + r * PANEL + (first + n) * LANES);
    for (size_t b = 0; b < blocks; ++b, words += F::WORDS)
        for (size_t g = 0; g < F::GROUPS; ++g, ++x_rg) {
            if (F::GROUPS > 1)  // the same eighth of the next block: codes lie in several places of it, too many streams
                for (size_t w = g * F::WORDS / F::GROUPS; w < (g + 1) * F::WORDS / F::GROUPS; w += 16)
                    __builtin_prefetch(words + F::WORDS + w);
            else if (ROWS == 1)
                prefetch_ahead<F::WORDS>(words);
            Int dots[ROWS][N];
            multiply_group<F, ROWS, N>(dots, x_rg, ldx, words, g, first);
#pragma GCC unroll 2
            for (size_t n = 0; n < N; ++n) {
                const Vec scale = F::scale(words, g, first + n);
                const Vec least = F::LEASTS ? F::least(words, g, first + n) : scale;
#pragma GCC unroll 4
                for (size_t r = 0; r < ROWS; ++r) {
                    const Rounded& x = x_rg[r * ldx];
                    y[r][n] = y[r][n] + to_float(dots[r][n]) * (scale * fill(x.scale));
                    if (F::LEASTS) y[r][n] = y[r][n] + least * fill(x.scale * static_cast<float>(sum_of(x)));
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
INLINE void tile(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* words, size_t R, size_t blocks) {
    if constexpr (ROWS > 1) {
        if (R < ROWS) return tile<F, ROWS - 1>(y_rp, x_rg, ldx, words, R, blocks);
    }
    if constexpr (ROWS == 1 || LANES == WIDTH) return add_rows<F, ROWS, VECS>(y_rp, x_rg, ldx, words, 0, blocks);
    for (size_t v = 0; v < VECS; ++v) add_rows<F, ROWS, 1>(y_rp, x_rg, ldx, words, v, blocks);
}

template <class F>
void multiply_format(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* panel, size_t R, size_t K) {
    // Groups of a panel that stay in the L1 cache while all rows use them: few of them if there are few rows, so that
    // the next ones are on their way meanwhile.
    const size_t part = F::GROUPS > 1 ? 1 : R <= 16 ? 2 : 8, blocks = K / (F::GROUPS * GROUP);
    for (size_t i = 0; i < R * PANEL; ++i) y_rp[i] = 0;
    for (size_t b = 0; b < blocks; b += part)
        for (size_t r = 0; r < R; r += MOST)
            tile<F, MOST>(y_rp + r * PANEL, x_rg + r * ldx + b * F::GROUPS, ldx, panel + b * F::WORDS,
                          R - r < MOST ? R - r : MOST, blocks - b < part ? blocks - b : part);
}

template <class F>
void column_format(float* w_k, const int32_t* panel, size_t output, size_t K) {
    const size_t v = output / LANES, lane = output % LANES;
    for (size_t k0 = 0; k0 < K; k0 += GROUP) {
        const size_t g = k0 / GROUP % F::GROUPS;
        const int32_t* words = panel + k0 / GROUP / F::GROUPS * F::WORDS;
        float scale[LANES], least[LANES] = {};
        if (F::LEASTS) store(least, F::least(words, g, v));
        for (size_t i = 0; i < FOURS; ++i) {
            const Vec whole = F::scale(words, g, v);
            store(scale, F::HALVES ? whole * to_float(F::small(words, g, 2 * i / FOURS, v)) : whole);
            uint8_t codes[LANES][4];
            const Int found = F::codes(words, g, v, i);
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
        int32_t lane[LANES], most = 0;  // the bits of a float without its sign are in order, NaN above all
        const Int sizes = larger(bits(abs(x[0])), bits(abs(x[1])));
        __builtin_memcpy(lane, &sizes, sizeof lane);
        for (size_t i = 0; i < LANES; ++i) most = lane[i] > most ? lane[i] : most;
        float largest;
        __builtin_memcpy(&largest, &most, sizeof largest);
        float inverse = 127 / largest;
        if (!(inverse <= __FLT_MAX__)) inverse = 0;  // of 0, of what is next to it, and of NaN
        for (size_t h = 0; h < 2; ++h) {
            const Int code = bits(x[h] * fill(inverse) + fill(shift)) - bits(fill(shift));
            store_bytes(x_g->code + h * LANES, code);
            __builtin_memcpy(lane, &code, sizeof lane);
            int32_t sum = 0;
            for (size_t i = 0; i < LANES; ++i) sum += lane[i];
            x_g->half[h] = static_cast<int16_t>(sum);
        }
        x_g->scale = largest / 127;
    }
}

// use(the format's struct), for the one that is asked for
template <class Use>
INLINE void with_format(Format format, Use use) {
    switch (format) {
        case Format::q8_0: return use(Q8_0<OFFSET>{});
        case Format::q4_0: return use(Q4<Format::q4_0>{});
        case Format::q4_1: return use(Q4<Format::q4_1>{});
        case Format::q5_0: return use(Q5<Format::q5_0>{});
        case Format::q5_1: return use(Q5<Format::q5_1>{});
        case Format::q4_k: return use(K<Format::q4_k>{});
        case Format::q5_k: return use(K<Format::q5_k>{});
        default: return use(Q6_K{});
    }
}

void multiply(float* y_rp, const Rounded* x_rg, size_t ldx, const int32_t* panel, Format format, size_t R, size_t K) {
    with_format(format, [&](auto f) { multiply_format<decltype(f)>(y_rp, x_rg, ldx, panel, R, K); });
}

void column(float* w_k, const int32_t* panel, Format format, size_t output, size_t K) {
    with_format(format, [&](auto f) { column_format<decltype(f)>(w_k, panel, output, K); });
}

}  // namespace

const Blocks blocks_of_isa = {round_groups, multiply, column};

}  // namespace chainrule::CHAINRULE_ISA
