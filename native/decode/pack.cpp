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

// The next bf16 that is not nearer to 0: the largest weight of a group then stays in reach.
float outwards_bf16(float x) { return float_of((bits_of(x) + 0xFFFF) & 0xFFFF0000); }

constexpr float ROUND = 12582912.0f;  // 1.5 · 2^23: adding it rounds to an integer, ties to even

// The nearest fp16, ties to even; infinite from 65,520 on.
uint16_t nearest_fp16(float x) {
    const uint32_t sign = bits_of(x) >> 16 & 0x8000, size = bits_of(x) & 0x7FFFFFFF;
    if (size >= 0x47800000) return static_cast<uint16_t>(sign | 0x7C00);                              // 2^16
    if (size < 0x38800000)  // below 2^-14 they are multiples of 2^-24, which 0.5 and what follows it are too
        return static_cast<uint16_t>(sign | (bits_of(float_of(size) + 0.5f) - bits_of(0.5f)));
    return static_cast<uint16_t>(sign | (size + 0xFFF + (size >> 13 & 1) - 0x38000000) >> 13);
}

// The largest magnitude of a group: its bits, and the first weight that has it. False if one is not finite.
bool find_largest(float& largest, const float* w_k) {
    uint32_t most = 0;
    float not_finite = 0;  // x - x is 0, but NaN for infinity and NaN
    for (size_t k = 0; k < GROUP; ++k) {
        most = std::max(most, bits_of(w_k[k]) & 0x7FFFFFFF);
        not_finite += w_k[k] - w_k[k];
    }
    size_t k = 0;
    while ((bits_of(w_k[k]) & 0x7FFFFFFF) != most && k + 1 < GROUP) ++k;
    largest = w_k[k];
    return not_finite == 0;
}

void put_scale(uint32_t* words, uint32_t upper, size_t column) {  // the scale is in the upper 16 bits
    uint32_t& pair = words[column % (PANEL / 2)];
    pair = column < PANEL / 2 ? (pair & 0xFFFF0000) | upper >> 16 : (pair & 0xFFFF) | upper;
}

// The fifth bits of 32 inputs, so that those of inputs 4 i to 4 i + 3 are bit i of the four bytes.
uint32_t in_fours(uint32_t fifth) {
    uint32_t found = 0;
    for (size_t k = 0; k < GROUP; ++k) found |= (fifth >> k & 1) << (k % 4 * 8 + k / 4);
    return found;
}

// A block of a file into its column of a panel's block, as words PANEL apart.
void put_block(uint32_t* words, const uint8_t* block, Format format, size_t column) {
    const size_t halves = block_halves(format), rest = block_bytes(format) - 2 * halves;
    const uint8_t* scales = format == Format::q6_k ? block + rest : block;
    const uint8_t* codes = format == Format::q6_k ? block : block + 2 * halves;
    for (size_t i = 0; i < halves; ++i, words += PANEL / 2) {
        uint16_t half;
        std::memcpy(&half, scales + 2 * i, sizeof half);
        put_scale(words, static_cast<uint32_t>(half) << 16, column);
    }
    words += column;
    for (size_t i = 0; i < rest; i += 4) std::memcpy(words + i / 4 * PANEL, codes + i, 4);
    if (format == Format::q5_0 || format == Format::q5_1) *words = in_fours(*words);
}

// As llama.cpp rounds: codes are found with the scale before that becomes an fp16.
bool put_rounded_block(uint32_t* words, const float* w_k, Format format, size_t column) {
    float largest;
    if (!find_largest(largest, w_k)) return false;
    uint8_t block[block_bytes(Format::q8_0)] = {}, *codes = block + 2 * block_halves(format);
    float scale, least = 0;
    auto put_fours = [&](float divisor, float middle) {  // what is least / divisor + middle or less becomes 0
        auto code = [&](size_t k) {
            const float found = (w_k[k] - least) / (divisor == 0 ? 1 : divisor) + middle;
            return static_cast<int32_t>(std::min(std::max(found, 0.0f), 15.0f));
        };
        for (size_t k = 0; k < GROUP / 2; ++k) codes[k] = static_cast<uint8_t>(code(k) | code(k + GROUP / 2) << 4);
    };
    if (format == Format::q4_1) {
        least = *std::min_element(w_k, w_k + GROUP) + 0.0f;  // 0 without a sign
        scale = (*std::max_element(w_k, w_k + GROUP) - least) / 15 + 0.0f;
        put_fours(scale, 0.5f);
    } else if (format == Format::q8_0) {
        scale = float_of(bits_of(largest) & 0x7FFFFFFF) / 127;
        const float divisor = scale > 0 ? scale : 1;
        for (size_t k = 0; k < GROUP; ++k)
            codes[k] = static_cast<uint8_t>(static_cast<int32_t>((w_k[k] / divisor + ROUND) - ROUND));
    } else {
        scale = largest / -8;
        put_fours(scale, 8.5f);
    }
    const uint16_t halves[] = {nearest_fp16(scale), nearest_fp16(least)};
    std::memcpy(block, halves, 2 * block_halves(format));
    put_block(words, block, format, column);
    return (halves[0] & 0x7C00) != 0x7C00 && (halves[1] & 0x7C00) != 0x7C00;
}

// A group of one output into its column of a panel's group, as words PANEL apart.
bool put_integers(uint32_t* words, const float* w_k, int bits, size_t column) {
    const int half = 1 << (bits - 1), per_word = 32 / bits;
    float largest;
    if (!find_largest(largest, w_k)) return false;
    // Four bits have no code to spare: the largest weight, with its sign, becomes code 0.
    const float scale = outwards_bf16(bits == 4 ? largest / static_cast<float>(-half)
                                                : float_of(bits_of(largest) & 0x7FFFFFFF) / static_cast<float>(half - 1));
    const float divisor = scale == 0 ? 1.0f : scale;
    uint32_t code_k[GROUP];
    for (size_t k = 0; k < GROUP; ++k) {
        const float nearest = (w_k[k] / divisor + ROUND) - ROUND + static_cast<float>(half);
        code_k[k] = static_cast<uint32_t>(static_cast<int32_t>(std::min(std::max(nearest, 0.0f), 2.0f * half - 1)));
    }
    put_scale(words, bits_of(scale) & 0xFFFF0000, column);
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
        case Format::fp16: {
            bool finite = true;
            for (size_t k = 0; k < GROUP; k += 2) {
                const uint32_t pair = nearest_fp16(w_k[k]) | static_cast<uint32_t>(nearest_fp16(w_k[k + 1])) << 16;
                finite = finite && (pair & 0x7C00) != 0x7C00 && (pair & 0x7C000000) != 0x7C000000;
                words[k / 2 * PANEL + column] = pair;
            }
            return finite;
        }
        case Format::int8: return put_integers(words, w_k, 8, column);
        case Format::int4: return put_integers(words, w_k, 4, column);
        default: return put_rounded_block(words, w_k, format, column);
    }
}

// put(words of a block of a panel, output among those given, block) for each of them, panels in parallel. Formats
// without blocks have groups.
template <class Put>
void for_blocks(int32_t* words, Format format, size_t first, size_t outputs, size_t inputs, Put put) {
    const size_t size = block_inputs(format), blocks = (inputs + size - 1) / size, block_words = panel_words(format, size);
    const size_t begin = first / PANEL, end = first + outputs;
    if (outputs) parallel_for((end + PANEL - 1) / PANEL - begin, [&](size_t p) {
        const size_t panel = begin + p, low = std::max(first, panel * PANEL), high = std::min(end, (panel + 1) * PANEL);
        uint32_t* at = reinterpret_cast<uint32_t*>(words) + panel * blocks * block_words;
        for (size_t b = 0; b < blocks; ++b, at += block_words)
            for (size_t output = low; output < high; ++output) put(at, output - first, b);
    });
}

}  // namespace

bool pack(int32_t* words, const float* weight_oi, Format format, size_t first, size_t outputs, size_t inputs) {
    std::atomic<bool> finite{true};
    for_blocks(words, format, first, outputs, inputs, [&](uint32_t* at, size_t output, size_t g) {
        const float* w_k = weight_oi + output * inputs + g * GROUP;
        const size_t count = std::min(GROUP, inputs - g * GROUP);
        float padded_k[GROUP] = {};
        if (count < GROUP) std::copy_n(w_k, count, padded_k);
        if (!put(at, count < GROUP ? padded_k : w_k, format, (first + output) % PANEL))
            finite.store(false, std::memory_order_relaxed);
    });
    return finite;
}

void pack_blocks(int32_t* words, const uint8_t* blocks, Format format, size_t first, size_t outputs, size_t inputs) {
    const size_t count = inputs / block_inputs(format);
    for_blocks(words, format, first, outputs, inputs, [&](uint32_t* at, size_t output, size_t b) {
        put_block(at, blocks + (output * count + b) * block_bytes(format), format, (first + output) % PANEL);
    });
}

}  // namespace chainrule
