// The epilogue of a product and attention over a KV cache, for inference.
#include "decode/decode.hpp"
#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

double activated(double x, Activation f) {
    switch (f) {
        case Activation::gelu: return gelu_exact(x);
        case Activation::gelu_tanh: return gelu_by_tanh(x);
        case Activation::relu: return relu(x);
        case Activation::silu: return silu(x);
        default: return x;
    }
}

void check_finish(Activation f, bool add) {
    constexpr size_t R = 3, LDY = PANEL + 4;
    const Floats product = numbers(R * PANEL, -3, 3), bias = numbers(PANEL), old = numbers(R * LDY);
    Doubles want = wide(old);
    for (size_t r = 0; r < R; ++r)
        for (size_t p = 0; p < PANEL; ++p)
            want[r * LDY + p] = (add ? old[r * LDY + p] : 0) + activated(double(product[r * PANEL + p]) + bias[p], f);
    check("finish", 1e-6, {{want, old}}, [&](const std::vector<float*>& out) {
        Floats overwritten = product;
        decode().finish(out[0], LDY, overwritten.data(), bias.data(), f, add, R);
    });
}

constexpr size_t D = 40, G = 3, POSITIONS = 150, TIMES = 4, PAST = POSITIONS - TIMES, QUERIES_ALL = G * TIMES;

struct Inputs {
    CacheFormat format;
    bool causal, biased;
    Floats k = numbers(POSITIONS * D), v = numbers(POSITIONS * D), q = numbers(QUERIES_ALL * D, -2, 2);
    Floats bias = numbers(G * POSITIONS, -2, 2);
};

// The n numbers of a part that share a scale, as the cache holds them.
void remembered(double* to, const float* x, size_t n, CacheFormat format) {
    double most = 0;
    for (size_t i = 0; i < n; ++i) most = std::max(most, std::fabs(double(x[i])));
    for (size_t i = 0; i < n; ++i)
        to[i] = format == CacheFormat::fp32   ? x[i]
                : format == CacheFormat::bf16 ? rounded(x[i], 8, -133)
                                              : std::nearbyint(x[i] * 127 / most) * most / 127;
}

Doubles plain(const Inputs& in) {
    Doubles k(POSITIONS * D), v(POSITIONS * D), out(QUERIES_ALL * D);
    for (size_t s = 0; s < POSITIONS; ++s) {
        remembered(&k[s * D], &in.k[s * D], D, in.format);
        for (size_t d = 0; d < D; d += PANEL)  // a scale for each panel of features
            remembered(&v[s * D + d], &in.v[s * D + d], std::min(PANEL, D - d), in.format);
    }
    for (size_t r = 0; r < QUERIES_ALL; ++r) {
        const size_t t = r / G, h = r % G, seen = PAST + (in.causal ? t + 1 : 0);
        Doubles weight(seen);
        double total = 0;
        for (size_t s = 0; s < seen; ++s) {
            double score = in.biased ? in.bias[h * POSITIONS + POSITIONS - 1 - (PAST + t - s)] : 0;
            for (size_t d = 0; d < D; ++d) score += 0.3 * in.q[r * D + d] * k[s * D + d];
            total += weight[s] = std::exp(score);
        }
        for (size_t s = 0; s < seen; ++s)
            for (size_t d = 0; d < D; ++d) out[r * D + d] += weight[s] / total * v[s * D + d];
    }
    return out;
}

void check_attend(CacheFormat format, bool causal, bool biased) {
    constexpr size_t COUNT = 5;  // pages in the slab; the sequence has three of them, in no order
    const Inputs in{format, causal, biased};
    check("cache", 1e-4, {{plain(in)}}, [&](const std::vector<float*>& out) {
        Floats slab(COUNT * head_floats(format, D), NAN), scratch(attend_scratch(POSITIONS, D), NAN);
        const Page pages[] = {{slab.data(), 3, COUNT}, {slab.data(), 0, COUNT}, {slab.data(), 4, COUNT}};
        const Cache cache = {pages, 0, format};
        for (size_t s = 0; s < POSITIONS; ++s) decode().remember(cache, &in.k[s * D], &in.v[s * D], s, D);
        decode().attend(out[0], in.q.data(), scratch.data(), cache, {0.3f, biased ? in.bias.data() : nullptr, POSITIONS},
                        PAST, causal, 0, QUERIES_ALL, G, D, G * D, G * D);
    });
}

}  // namespace

void check_cache() {
    for (Activation f : {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::silu})
        for (bool add : {false, true}) check_finish(f, add);
    for (CacheFormat format : {CacheFormat::fp32, CacheFormat::bf16, CacheFormat::int8}) {
        check_attend(format, false, false);
        check_attend(format, true, false);
        check_attend(format, true, true);
    }
}

}  // namespace chainrule::tests
