// Kernels of inference other than GEMM with packed weights and those of training: the epilogue of a GEMM, and attention
// over a KV cache.
#pragma once

#include "decode/panels.hpp"

namespace chainrule {

constexpr size_t PAGE = 64;  // positions of a page of the KV cache: whole panels

// A page is one of `count` in a slab. Each part of a page stands beside the same part of the others, so that a head reads
// pages that follow each other as one stream: a part of f floats, with b floats of other parts before it in a page, is at
// slab + b · count + f · index.
struct Page {
    float* slab;
    size_t index, count;
};

// How a cache holds its numbers. In int8 those of a position in a part share a scale, largest magnitude / 127, and the
// scales of all positions follow the codes.
enum class CacheFormat { fp32, bf16, int8 };
constexpr int CACHE_FORMATS = 3;

static constexpr size_t part_floats(CacheFormat format, size_t numbers) {
    return format == CacheFormat::fp32 ? numbers : format == CacheFormat::bf16 ? numbers / 2 : numbers / 4 + PAGE;
}

// The KV cache of one head of one sequence, in pages. Keys are stored in panels of 32 positions, so that a query is
// multiplied by 32 of them at a time; values in panels of 32 features. Parts of a page are the keys of a head, (PAGE /
// PANEL, D, PANEL), and then each panel of its values, (PAGE, PANEL).
struct Cache {
    const Page* pages;
    size_t before;  // floats of all parts before the keys of this head
    CacheFormat format;
};

// The score of a query at position p for the key at s is scale q·k + bias_s[longest - 1 - (p - s)]: a bias for each
// distance, of which there are `longest`, in rows of query heads. Null for none.
struct Scores {
    float scale;
    const float* bias_hs = nullptr;
    size_t longest = 0;
};

enum class Activation { none, gelu, gelu_tanh, relu, silu };

constexpr size_t QUERIES = 24;

static constexpr size_t whole_panels(size_t n) { return (n + PANEL - 1) / PANEL * PANEL; }
static constexpr size_t head_floats(CacheFormat format, size_t D) {  // of a page, for one head
    return part_floats(format, PAGE * D) + whole_panels(D) / PANEL * part_floats(format, PAGE * PANEL);
}
static constexpr size_t attend_scratch(size_t positions, size_t D) {
    return QUERIES * (whole_panels(positions) + 2 * whole_panels(D)) + (D > PAGE ? D : PAGE) * PANEL;
}

struct Decode {
    // y (R, PANEL), rows ldy apart, = f(product + bias), or with `add` y + f(product + bias). product_rp is overwritten.
    void (*finish)(float* y_rp, size_t ldy, float* product_rp, const float* bias_p, Activation f, bool add, size_t R);

    void (*remember)(Cache cache, const float* key_d, const float* value_d, size_t position, size_t D);

    // Query r of R is head h = r % G of time t = r / G; G heads share this cache. It sees the first `past` positions and,
    // if `causal`, those up to its own, `past` + t; a query that sees none gives zeros. q and out have head h of t at
    // t ld + h D; the bias of `scores` is that of the first of the G heads, and needs `causal`. R is at most QUERIES;
    // scratch has attend_scratch(positions, D) floats.
    void (*attend)(float* out, const float* q, float* scratch, Cache cache, Scores scores, size_t past, bool causal,
                   size_t first, size_t R, size_t G, size_t D, size_t ldo, size_t ldq);
};
CHAINRULE_KERNELS(Decode, decode)

}  // namespace chainrule
