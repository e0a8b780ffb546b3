#include "decode/pack.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/pool.hpp"

namespace chainrule {
namespace {

uint32_t bits_of(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

float float_of(uint32_t bits) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t nearest_bf16(float x) {  // ties to even, NaN stays NaN
    const uint32_t bits = bits_of(x);
    return x != x ? bits >> 16 | 0x40 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

// The next bf16 that is not nearer to 0: the largest weight of a group then stays in reach.
float outwards_bf16(float x) { return float_of((bits_of(x) + 0xFFFF) & 0xFFFF0000); }

constexpr float ROUND = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer, ties to even

// A group of one output into its column of a panel's group, as words PANEL apart.
bool put_integers(uint32_t* words, const float* w_k, int bits, size_t column) {
    const int half = 1 << (bits - 1), per_word = 32 / bits;
    uint32_t largest = 0;
    float not_finite = 0;  // x - x is 0, but NaN for infinity and NaN
    for (size_t k = 0; k < GROUP; ++k) {
        largest = std::max(largest, bits_of(w_k[k]) & 0x7FFFFFFF);
        not_finite += w_k[k] - w_k[k];
    }
    if (not_finite != 0) return false;
    float scale = float_of(largest) / static_cast<float>(half - 1);
    if (bits == 4) {  // no code to spare: the largest weight, with its sign, becomes code 0
        size_t k = 0;
        while ((bits_of(w_k[k]) & 0x7FFFFFFF) != largest) ++k;
        scale = w_k[k] / static_cast<float>(-half);
    }
    scale = outwards_bf16(scale);
    const float divisor = scale == 0 ? 1.0f : scale;
    uint32_t code_k[GROUP];
    for (size_t k = 0; k < GROUP; ++k) {
        const float nearest = (w_k[k] / divisor + ROUND) - ROUND + static_cast<float>(half);
        code_k[k] = static_cast<uint32_t>(static_cast<int32_t>(std::min(std::max(nearest, 0.0f), 2.0f * half - 1)));
    }
    uint32_t& pair = words[column % (PANEL / 2)];
    const uint32_t high = bits_of(scale) & 0xFFFF0000;
    pair = column < PANEL / 2 ? (pair & 0xFFFF0000) | high >> 16 : (pair & 0xFFFF) | high;
    words += PANEL / 2 + column;
    for (size_t k = 0; k < GROUP; k += per_word, words += PANEL) {
        uint32_t word = 0;
        for (int i = 0; i < per_word; ++i) word |= code_k[k + i] << (bits * i);
        *words = word;
    }
    return true;
}

bool put(uint32_t* words, const float* w_k, Format format, size_t column) {
    switch (format) {
        case Format::fp32:
            for (size_t k = 0; k < GROUP; ++k) words[k * PANEL + column] = bits_of(w_k[k]);
            return true;
        case Format::bf16: {
            float not_finite = 0;
            for (size_t k = 0; k < GROUP; k += 2) {
                not_finite += (w_k[k] - w_k[k]) + (w_k[k + 1] - w_k[k + 1]);
                words[k / 2 * PANEL + column] = nearest_bf16(w_k[k]) | nearest_bf16(w_k[k + 1]) << 16;
            }
            return not_finite == 0;
        }
        case Format::int8: return put_integers(words, w_k, 8, column);
        default: return put_integers(words, w_k, 4, column);
    }
}

}  // namespace

bool pack(int32_t* words, const float* weight_oi, Format format, size_t first, size_t outputs, size_t inputs) {
    const size_t groups = (inputs + GROUP - 1) / GROUP, group_words = panel_words(format, GROUP), end = first + outputs;
    const size_t begin = first / PANEL;
    std::atomic<bool> finite{true};
    if (outputs) parallel_for((end + PANEL - 1) / PANEL - begin, [&](size_t block) {
        const size_t panel = begin + block, low = std::max(first, panel * PANEL), high = std::min(end, (panel + 1) * PANEL);
        uint32_t* at = reinterpret_cast<uint32_t*>(words) + panel * groups * group_words;
        for (size_t g = 0; g < groups; ++g, at += group_words)
            for (size_t output = low; output < high; ++output) {
                const float* w_k = weight_oi + (output - first) * inputs + g * GROUP;
                const size_t count = std::min(GROUP, inputs - g * GROUP);
                float padded_k[GROUP] = {};
                if (count < GROUP) std::copy_n(w_k, count, padded_k);
                if (!put(at, count < GROUP ? padded_k : w_k, format, output % PANEL))
                    finite.store(false, std::memory_order_relaxed);
            }
    });
    return finite;
}

}  // namespace chainrule
