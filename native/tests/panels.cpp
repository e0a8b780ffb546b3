#include "decode/panels.hpp"

#include <cstring>

#include "decode/blocks.hpp"
#include "decode/pack.hpp"
#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

using Words = std::vector<int32_t>;

double from_bf16(uint32_t half) {
    const uint32_t bits = half << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

double from_fp16(uint32_t half) {
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    const double size = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
    return half & 0x8000 ? -size : size;
}

// The weight of an input for an output, read off the words as decode/panels.hpp describes them.
double weight(const Words& words, Format format, size_t output, size_t k) {
    const auto word = [&](size_t i) { return static_cast<uint32_t>(words[i]); };
    if (format == Format::fp32) {
        float x;
        std::memcpy(&x, &words[k * PANEL + output], sizeof x);
        return x;
    }
    const auto sixteen = [&] { return word(k / 2 * PANEL + output) >> 16 * (k % 2) & 0xffff; };
    if (format == Format::bf16) return from_bf16(sixteen());
    if (format == Format::fp16) return from_fp16(sixteen());
    const size_t group = k / GROUP * panel_words(format, GROUP), i = k % GROUP;
    const auto half = [&](size_t row) {
        return word(group + row * PANEL / 2 + output % (PANEL / 2)) >> (output < PANEL / 2 ? 0 : 16) & 0xffff;
    };
    const size_t codes = group + (format == Format::q4_1 ? 2 : 1) * PANEL / 2 + output;
    const auto byte = [&](size_t b) { return word(codes + b / 4 * PANEL) >> 8 * (b % 4) & 0xff; };
    const int four_bits = byte(i % 16) >> (i < 16 ? 0 : 4) & 15;
    switch (format) {
        case Format::int8: return (static_cast<int>(byte(i)) - 128) * from_bf16(half(0));
        case Format::int4: return (static_cast<int>(word(codes + i / 8 * PANEL) >> 4 * (i % 8) & 15) - 8) * from_bf16(half(0));
        case Format::q8_0: return static_cast<int8_t>(byte(i)) * from_fp16(half(0));
        case Format::q4_0: return (four_bits - 8) * from_fp16(half(0));
        default: return four_bits * from_fp16(half(0)) + from_fp16(half(1));
    }
}

struct Packed {
    Format format;
    size_t outputs, inputs, K = (inputs + GROUP - 1) / GROUP * GROUP;
    Floats w = numbers(outputs * inputs);
    Words words = Words(panel_words(format, K));
    Doubles w_pk = Doubles(PANEL * K);
};

Packed packed(Format format, size_t outputs, size_t inputs) {
    Packed p{format, outputs, inputs};
    pack(p.words.data(), p.w.data(), format, 0, outputs, inputs);
    for (size_t output = 0; output < outputs; ++output)
        for (size_t k = 0; k < p.K; ++k) p.w_pk[output * p.K + k] = weight(p.words, format, output, k);
    return p;
}

// What packing rounds off, as a fraction of the largest weight.
void check_rounding(const Packed& p) {
    const double tolerance[FORMATS] = {0, 1.0 / 256, 1.0 / 2048, 0.6 / 127, 1.1 / 8, 0.6 / 127, 1.1 / 8, 0.6 / 7};
    check("pack", tolerance[static_cast<int>(p.format)], {{wide(p.w)}}, [&](const std::vector<float*>& out) {
        Words words(p.words.size());
        pack(words.data(), p.w.data(), p.format, 0, p.outputs, p.inputs);
        for (size_t i = 0; i < p.w.size(); ++i)
            out[0][i] = static_cast<float>(weight(words, p.format, i / p.inputs, i % p.inputs));
    }, Bits::of_all);
}

void check_column(const Packed& p) {
    const size_t output = p.outputs - 1;
    check("column", 1e-7, {{Doubles(&p.w_pk[output * p.K], &p.w_pk[output * p.K] + p.K)}}, [&](const std::vector<float*>& out) {
        (in_blocks(p.format) ? blocks().column : panels().column)(out[0], p.words.data(), p.format, output, p.K);
    });
}

Doubles products(const Packed& p, const Doubles& x_rk, size_t R) {
    Doubles y(R * PANEL);
    for (size_t r = 0; r < R; ++r)
        for (size_t output = 0; output < p.outputs; ++output)
            for (size_t k = 0; k < p.K; ++k) y[r * PANEL + output] += x_rk[r * p.K + k] * p.w_pk[output * p.K + k];
    return y;
}

Floats padded_rows(const Packed& p, size_t R) {
    Floats x = numbers(R * p.K);
    for (size_t i = 0; i < x.size(); ++i)
        if (i % p.K >= p.inputs) x[i] = 0;
    return x;
}

void check_multiply(const Packed& p, size_t R) {
    const Floats x = padded_rows(p, R);
    check("panel", 2e-6, {{products(p, wide(x), R)}}, [&](const std::vector<float*>& out) {
        panels().multiply(out[0], x.data(), p.K, p.words.data(), p.format, R, p.K);
    });
}

// Activations in 8 bits, then a product in integers.
void check_blocks(const Packed& p, size_t R) {
    const Floats x = padded_rows(p, R);
    const size_t groups = p.K / GROUP;
    std::vector<Rounded> rows(R * groups);
    check("rounding", 0.6 / 127, {{wide(x)}, {Doubles(R * groups, 1)}}, [&](const std::vector<float*>& out) {
        for (size_t r = 0; r < R; ++r) blocks().round(&rows[r * groups], &x[r * p.K], p.K);
        for (size_t i = 0; i < x.size(); ++i) out[0][i] = rows[i / GROUP].scale * rows[i / GROUP].code[i % GROUP];
        for (size_t g = 0; g < rows.size(); ++g) {
            int32_t half[2] = {0, 0};
            for (size_t i = 0; i < GROUP; ++i) half[i / 16] += rows[g].code[i];
            out[1][g] = rows[g].half[0] == half[0] && rows[g].half[1] == half[1] ? 1.0f : 0.0f;
        }
    }, Bits::of_all);
    Doubles seen(x.size());
    for (size_t i = 0; i < x.size(); ++i) seen[i] = double(rows[i / GROUP].scale) * rows[i / GROUP].code[i % GROUP];
    check("blocks", 2e-6, {{products(p, seen, R)}}, [&](const std::vector<float*>& out) {
        blocks().multiply(out[0], rows.data(), groups, p.words.data(), p.format, R, p.K);
    }, Bits::of_all);
}

void check_accumulate(size_t R, size_t K) {
    constexpr size_t LDY = PANEL + 5;
    const Floats x = numbers(R * K), b = numbers(K * PANEL), old = numbers(R * LDY);
    Doubles want = wide(old);
    for (size_t r = 0; r < R; ++r)
        for (size_t p = 0; p < PANEL; ++p)
            for (size_t k = 0; k < K; ++k) want[r * LDY + p] += double(x[r * K + k]) * b[k * PANEL + p];
    check("panel += x b", 2e-6, {{want, old}},
          [&](const std::vector<float*>& out) { panels().accumulate(out[0], LDY, x.data(), K, b.data(), R, K); });
}

}  // namespace

void check_panels() {
    for (Format format : {Format::fp32, Format::bf16, Format::fp16, Format::int8, Format::int4, Format::q8_0, Format::q4_0,
                          Format::q4_1})
        for (size_t outputs : {32, 27}) {
            const Packed p = packed(format, outputs, 70);
            check_rounding(p);
            check_column(p);
            for (size_t R : {1, 2, 3, 7, 13}) in_blocks(format) ? check_blocks(p, R) : check_multiply(p, R);
        }
    for (size_t R : {1, 5, 24}) check_accumulate(R, 37);
}

}  // namespace chainrule::tests
