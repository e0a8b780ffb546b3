#include "decode/decode.hpp"

#include "ops/activations.hpp"
#include "ops/gelu.hpp"
#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

void finish(float* y_rp, size_t ldy, float* product_rp, const float* bias_p, Activation f, bool add, size_t R) {
    if (bias_p)
        for (size_t r = 0; r < R; ++r)
            for (size_t c = 0; c < PANEL; c += LANES) {
                float* v = product_rp + r * PANEL + c;
                store(v, load(v) + load(bias_p + c));
            }
    if (f == Activation::gelu) gelu.forward(product_rp, product_rp, R * PANEL);
    if (f == Activation::gelu_tanh) gelu.tanh_forward(product_rp, product_rp, R * PANEL);
    if (f == Activation::relu) activations.relu_forward(product_rp, product_rp, R * PANEL);
    if (f == Activation::silu) activations.silu_forward(product_rp, product_rp, R * PANEL);
    for (size_t r = 0; r < R; ++r)
        for (size_t c = 0; c < PANEL; c += LANES) {
            const Vec v = load(product_rp + r * PANEL + c);
            float* y = y_rp + r * ldy + c;
            store(y, add ? load(y) + v : v);
        }
}

float* part(const Page& page, size_t before, size_t floats) {
    return page.slab + before * page.count + floats * page.index;
}
float* keys_in(Cache cache, size_t page, size_t D) {
    return part(cache.pages[page], cache.before, part_floats(cache.format, PAGE * D));
}
float* values_in(Cache cache, size_t page, size_t D, size_t d) {  // the panel of feature d
    const size_t keys = part_floats(cache.format, PAGE * D), values = part_floats(cache.format, PAGE * PANEL);
    return part(cache.pages[page], cache.before + keys + d / PANEL * values, values);
}
float* scales_in(float* part, size_t numbers) { return part + numbers / 4; }  // of the codes of a part in int8

// x (n) of the position at `place` of a page into a part of `numbers`, from the index `first` on, `step` apart
void write(float* part, size_t numbers, CacheFormat format, size_t place, const float* x_n, size_t n, size_t first,
           size_t step) {
    if (format == CacheFormat::fp32) {
        for (size_t i = 0; i < n; ++i) part[first + i * step] = x_n[i];
    } else if (format == CacheFormat::bf16) {
        uint16_t* to = reinterpret_cast<uint16_t*>(part) + first;
        for (size_t i = 0; i < n; ++i) to[i * step] = static_cast<uint16_t>(nearest_bf16(x_n[i]));
    } else {
        const float shift = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer, which its lowest bits are
        float largest = 0;
        for (size_t i = 0; i < n; ++i) {
            const float size = __builtin_fabsf(x_n[i]);
            largest = size > largest || size != size ? size : largest;  // NaN stays
        }
        float inverse = 127 / largest;
        if (!(inverse <= __FLT_MAX__)) inverse = 0;  // of 0, of what is next to it, and of NaN
        int8_t* to = reinterpret_cast<int8_t*>(part) + first;
        for (size_t i = 0; i < n; ++i) {
            const float nearest = x_n[i] * inverse + shift;
            int32_t bits;
            __builtin_memcpy(&bits, &nearest, sizeof bits);
            to[i * step] = static_cast<int8_t>(bits);
        }
        scales_in(part, numbers)[place] = largest / 127;
    }
}

void remember(Cache cache, const float* key_d, const float* value_d, size_t position, size_t D) {
    const size_t page = position / PAGE, place = position % PAGE;
    write(keys_in(cache, page, D), PAGE * D, cache.format, place, key_d, D, place / PANEL * PANEL * D + place % PANEL,
          PANEL);
    for (size_t d = 0; d < D; d += PANEL)
        write(values_in(cache, page, D, d), PAGE * PANEL, cache.format, place, value_d + d, D - d < PANEL ? D - d : PANEL,
              place * PANEL, 1);
}

INLINE Vec load_bf16(const uint16_t* from) {
#if defined(__AVX512F__)
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    Int v;
    v.part[0] = (IntRegister)_mm512_maskz_cvtepu16_epi32(-1, halves);
    return from_bits(shift_left(v, 16));
#elif defined(__AVX2__)
    Int v;
    for (size_t i = 0; i < PARTS; ++i)
        v.part[i] = (IntRegister)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(from + i * WIDTH)));
    return from_bits(shift_left(v, 16));
#else
    Int v;
    for (size_t i = 0; i < LANES; ++i) v.part[i / WIDTH][i % WIDTH] = static_cast<int32_t>(from[i]) << 16;
    return from_bits(v);
#endif
}
INLINE Vec load_int8(const int8_t* from) {
    Int v;
#if defined(__AVX512F__)
    v.part[0] = (IntRegister)_mm512_maskz_cvtepi8_epi32(-1, _mm_loadu_si128((const __m128i*)from));
#elif defined(__AVX2__)
    for (size_t i = 0; i < PARTS; ++i)
        v.part[i] = (IntRegister)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)(from + i * WIDTH)));
#else
    for (size_t i = 0; i < LANES; ++i) v.part[i / WIDTH][i % WIDTH] = from[i];
#endif
    return to_float(v);
}

// Rows of PANEL numbers of a part, from the index `first` on, as floats: where they are, or in `expanded`. A code of int8
// is multiplied by the scale of its column, or of its row: that of the first is the one at `place`.
const float* rows_of(float* expanded, float* part, size_t numbers, CacheFormat format, size_t first, size_t rows,
                     size_t place, bool by_column) {
    if (format == CacheFormat::fp32) return part + first;
    if (format == CacheFormat::bf16) {
        const uint16_t* from = reinterpret_cast<const uint16_t*>(part) + first;
        for (size_t i = 0; i < rows * PANEL; i += LANES) store(expanded + i, load_bf16(from + i));
        return expanded;
    }
    const int8_t* from = reinterpret_cast<const int8_t*>(part) + first;
    const float* scale = scales_in(part, numbers) + place;
    for (size_t c = 0; c < PANEL; c += LANES)
        for (size_t r = 0; r < rows; ++r)
            store(expanded + r * PANEL + c, load_int8(from + r * PANEL + c) * (by_column ? load(scale + c) : fill(scale[r])));
    return expanded;
}

// In place e^(s - max) of the first n scores and zeros up to `end`, a multiple of LANES; returns their sum.
float softmax(float* s, size_t n, size_t end) {
    const size_t whole = n - n % LANES;
    Vec top = fill(-__builtin_inff());
    for (size_t i = 0; i < whole; i += LANES) top = max(load(s + i), top);
    float highest = largest(top);
    for (size_t i = whole; i < n; ++i) highest = s[i] > highest ? s[i] : highest;
    for (size_t i = n; i < end; ++i) s[i] = -__builtin_inff();
    Vec total = fill(0);
    for (size_t i = 0; i < end; i += LANES) {
        const Vec e = exp(load(s + i) - fill(highest));
        store(s + i, e);
        total = total + e;
    }
    return sum(total);
}

void attend(float* out, const float* q, float* scratch, Cache cache, Scores scores, size_t past, bool causal,
            size_t first, size_t R, size_t G, size_t D, size_t ldo, size_t ldq) {
    const auto sees = [&](size_t r) { return past + (causal ? (first + r) / G + 1 : 0); };
    const size_t seen = sees(R - 1);  // by the last query, at least as many as by any other
    const size_t S = whole_panels(seen), W = whole_panels(D);
    float *scores_rs = scratch, *q_rd = scores_rs + R * S, *mixed_rd = q_rd + R * W, *expanded = mixed_rd + R * W;
    for (size_t i = 0; i < R * S; ++i) scores_rs[i] = 0;
    for (size_t i = 0; i < R * W; ++i) mixed_rd[i] = 0;
    for (size_t r = 0; r < R; ++r) {
        const size_t t = (first + r) / G, h = (first + r) % G;
        for (size_t d = 0; d < D; ++d) q_rd[r * W + d] = scores.scale * q[t * ldq + h * D + d];
        if (!scores.bias_hs) continue;
        const float* bias_s = scores.bias_hs + (h + 1) * scores.longest - (past + t + 1);  // of the key at 0
        for (size_t s = 0; s < sees(r); ++s) scores_rs[r * S + s] = bias_s[s];
    }
    for (size_t s = 0; s < S; s += PANEL)
        panels.accumulate(scores_rs + s, S, q_rd, W,
                          rows_of(expanded, keys_in(cache, s / PAGE, D), PAGE * D, cache.format, s % PAGE * D, D, s % PAGE, true),
                          R, D);
    float total[QUERIES];
    for (size_t r = 0; r < R; ++r) total[r] = seen ? softmax(scores_rs + r * S, sees(r), S) : 1;
    for (size_t d = 0; d < D; d += PANEL)
        for (size_t s = 0; s < seen; s += PAGE) {
            const size_t count = seen - s < PAGE ? seen - s : PAGE;
            panels.accumulate(mixed_rd + d, W, scores_rs + s, S,
                              rows_of(expanded, values_in(cache, s / PAGE, D, d), PAGE * PANEL, cache.format, 0, count, 0, false),
                              R, count);
        }
    for (size_t r = 0; r < R; ++r) {
        const size_t t = (first + r) / G, h = (first + r) % G;
        for (size_t d = 0; d < D; ++d) out[t * ldo + h * D + d] = mixed_rd[r * W + d] / total[r];
    }
}

}  // namespace

const Decode decode = {finish, remember, attend};

}  // namespace chainrule::CHAINRULE_ISA
