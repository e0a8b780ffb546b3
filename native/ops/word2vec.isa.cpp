// Skip-gram and CBOW with negative sampling.        docs/guide/word2vec.md; derivation: docs/derivations/pairs.md
#include "ops/word2vec.hpp"

#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

INLINE float* table_row(const WordPlan& plan, uint32_t key) {
    return plan.table_vc[key & 1] + (key >> 1) * plan.C;
}

// The tables are larger than the caches, and rows are needed in random order.
INLINE void prefetch(const WordPlan& plan, uint32_t key) {
    const float* row = table_row(plan, key);
    for (size_t c = 0; c < plan.C; c += LANES) __builtin_prefetch(row + c);
}

// The slot of a row in this chunk; a new one if the row has none yet.
INLINE uint32_t slot_of(WordChunk& chunk, const WordPlan& plan, uint32_t key) {
    for (size_t bucket = key * 0x9E3779B1u;; ++bucket) {
        uint32_t& slot = chunk.slot_h[bucket & (chunk.buckets - 1)];
        if (slot == 0) {
            slot = static_cast<uint32_t>(chunk.slots);
            chunk.key_s[chunk.slots++] = key;
            prefetch(plan, key);
        }
        if (chunk.key_s[slot] == key) return slot;
    }
}

// Samples a word from the alias table: the high half of random · V is the column, the low half decides within it.
INLINE int32_t drawn_id(const WordPlan& plan, uint32_t random) {
    const uint64_t product = static_cast<uint64_t>(random) * plan.V;
    const auto column = static_cast<uint32_t>(product >> 32);
    return static_cast<uint32_t>(product) < plan.accept_v[column] ? static_cast<int32_t>(column) : plan.other_v[column];
}

// Draws all random choices of the chunk, and collects the rows it needs.
void choose(WordChunk& chunk, const WordPlan& plan, size_t first, size_t count) {
    const size_t targets = word_targets(plan.negatives), blocks = word_draws(plan.negatives);
    __builtin_memset(chunk.slot_h, 0, chunk.buckets * sizeof *chunk.slot_h);
    chunk.slots = 1;
    random_words(chunk.random, plan.draws, first * blocks, count * blocks);
    for (size_t i = 0; i < count + 2 * plan.window; ++i) {
        const size_t p = first + i - plan.window;  // before the start this wraps around and is not below N
        chunk.input_p[i] = p < plan.N && plan.id_n[p] >= 0 ? slot_of(chunk, plan, 2 * plan.id_n[p]) : 0;
    }
    for (size_t i = 0; i < count; ++i) {
        const int32_t center = plan.id_n[first + i];
        const auto* random = reinterpret_cast<const uint32_t*>(chunk.random + i * blocks * 8);
        uint32_t* target = chunk.target_pt + i * targets;
        for (size_t t = 0; t < targets; ++t) target[t] = 0;
        if (center < 0) continue;
        chunk.reach_p[i] = 1 + static_cast<uint32_t>(static_cast<uint64_t>(random[0]) * plan.window >> 32);
        target[0] = slot_of(chunk, plan, 2 * center + 1);
        for (size_t t = 1; t <= plan.negatives; ++t) {
            const int32_t id = drawn_id(plan, random[t]);
            if (id != center) target[t] = slot_of(chunk, plan, 2 * id + 1);  // the center is not a negative of itself
        }
    }
}

void copy_rows(WordChunk& chunk, const WordPlan& plan) {
    for (size_t s = 1; s < chunk.slots; ++s) {
        const float* from = table_row(plan, chunk.key_s[s]);
        float* to = chunk.row_sc + s * chunk.stride;
        for (size_t c = 0; c < plan.C; c += LANES) store(to + c, load_next(from + c, plan.C - c));
    }
}

// g_mt = lr (label - σ(x_m · y_t)): label 1 for the center, the first target; 0 in the padding.    [PR.3] [PR.4]
void coefficients(WordChunk& chunk, const uint32_t* target, size_t M, size_t T, float lr) {
    const size_t S = chunk.stride;
    for (size_t m = 0; m < M; ++m) {
        const float* x = chunk.x_mc + m * S;
        for (size_t t = 0; t < T; t += TARGET_TILE) {
            const float* y = chunk.y_tc + t * S;
            Vec score[TARGET_TILE] = {fill(0), fill(0), fill(0)};
            for (size_t c = 0; c < S; c += LANES)
#pragma GCC unroll 3
                for (size_t k = 0; k < TARGET_TILE; ++k) score[k] = fma(load(x + c), load(y + k * S + c), score[k]);
#pragma GCC unroll 3
            for (size_t k = 0; k < TARGET_TILE; ++k) chunk.g_mt[m * T + t + k] = sum(score[k]);
        }
    }
    for (size_t i = 0; i < M * T; i += LANES) store(chunk.g_mt + i, sigmoid(load(chunk.g_mt + i)));
    for (size_t m = 0; m < M; ++m)
        for (size_t t = 0; t < T; ++t) {
            float& g = chunk.g_mt[m * T + t];
            g = target[t] ? lr * ((t == 0 ? 1.0f : 0.0f) - g) : 0.0f;
        }
}

// dx_m += Σ_t g_mt y_t and the targets' rows += Σ_m g_mt x_m, all from values before the step.    [PR.5] [PR.6]
void update(WordChunk& chunk, float* const* dx_m, const uint32_t* target, size_t M, size_t T) {
    const size_t S = chunk.stride;
    for (size_t c = 0; c < S; c += LANES)
        for (size_t t = 0; t < T; t += TARGET_TILE) {
            Vec y[TARGET_TILE], dy[TARGET_TILE];
#pragma GCC unroll 3
            for (size_t k = 0; k < TARGET_TILE; ++k) y[k] = load(chunk.y_tc + (t + k) * S + c), dy[k] = fill(0);
            for (size_t m = 0; m < M; ++m) {
                const Vec x = load(chunk.x_mc + m * S + c);
                Vec dx = load(dx_m[m] + c);
#pragma GCC unroll 3
                for (size_t k = 0; k < TARGET_TILE; ++k) {
                    const Vec g = fill(chunk.g_mt[m * T + t + k]);
                    dx = fma(g, y[k], dx);
                    dy[k] = fma(g, x, dy[k]);
                }
                store(dx_m[m] + c, dx);
            }
            for (size_t k = 0; k < TARGET_TILE; ++k) {
                float* row = chunk.row_sc + target[t + k] * S + c;
                store(row, load(row) + dy[k]);
            }
        }
}

void window_step(WordChunk& chunk, const WordPlan& plan, const uint32_t* input, size_t before, size_t after,
                 const uint32_t* target) {
    const size_t S = chunk.stride, T = word_targets(plan.negatives), M = before + after;
    float* rows[2 * MOST_WINDOW];
    for (size_t m = 0; m < M; ++m) rows[m] = chunk.row_sc + input[m < before ? m : m + 1] * S;
    for (size_t t = 0; t < T; ++t)
        __builtin_memcpy(chunk.y_tc + t * S, chunk.row_sc + target[t] * S, S * sizeof(float));
    if (!plan.average) {
        for (size_t m = 0; m < M; ++m) __builtin_memcpy(chunk.x_mc + m * S, rows[m], S * sizeof(float));
        coefficients(chunk, target, M, T, plan.lr);
        update(chunk, rows, target, M, T);
        return;
    }
    const Vec scale = fill(1.0f / static_cast<float>(M));
    float* dx = chunk.x_mc + S;  // of the mean, which is the only input
    for (size_t c = 0; c < S; c += LANES) {
        Vec total = fill(0);
        for (size_t m = 0; m < M; ++m) total = total + load(rows[m] + c);
        store(chunk.x_mc + c, total * scale);
        store(dx + c, fill(0));
    }
    coefficients(chunk, target, 1, T, plan.lr);
    update(chunk, &dx, target, 1, T);
    for (size_t m = 0; m < M; ++m)  // forward was: x = the mean of the rows
        for (size_t c = 0; c < S; c += LANES) store(rows[m] + c, fma(load(dx + c), scale, load(rows[m] + c)));
}

// Turns the copies into updates, copy - row of the table, and sorts their slots by shard.
void updates(WordChunk& chunk, const WordPlan& plan) {
    size_t* bound = chunk.bound;
    for (size_t h = 0; h <= WORD_SHARDS; ++h) bound[h] = 0;
    for (size_t s = 1; s < chunk.slots; ++s) {
        const float* old = table_row(plan, chunk.key_s[s]);
        float* row = chunk.row_sc + s * chunk.stride;
        for (size_t c = 0; c < plan.C; c += LANES) store(row + c, load(row + c) - load_next(old + c, plan.C - c));
        ++bound[chunk.key_s[s] % WORD_SHARDS];
    }
    for (size_t h = 1; h <= WORD_SHARDS; ++h) bound[h] += bound[h - 1];  // ends; below, going backwards, they become beginnings
    for (size_t s = chunk.slots - 1; s > 0; --s)
        chunk.order_s[--bound[chunk.key_s[s] % WORD_SHARDS]] = static_cast<uint32_t>(s);
}

void learn(WordChunk& chunk, const WordPlan& plan, size_t first, size_t count) {
    choose(chunk, plan, first, count);
    copy_rows(chunk, plan);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t* input = chunk.input_p + i + plan.window;
        if (*input == 0) continue;
        size_t before = 0, after = 0;
        while (before < chunk.reach_p[i] && *(input - before - 1)) ++before;
        while (after < chunk.reach_p[i] && input[after + 1]) ++after;
        if (before + after)
            window_step(chunk, plan, input - before, before, after, chunk.target_pt + i * word_targets(plan.negatives));
    }
    updates(chunk, plan);
}

void add(const WordPlan& plan, const WordChunk& chunk, size_t shard) {
    constexpr size_t AHEAD = 4;
    const size_t end = chunk.bound[shard + 1];
    for (size_t i = chunk.bound[shard]; i < end; ++i) {
        const uint32_t s = chunk.order_s[i];
        if (i + AHEAD < end) prefetch(plan, chunk.key_s[chunk.order_s[i + AHEAD]]);
        const float* update = chunk.row_sc + s * chunk.stride;
        float* row = table_row(plan, chunk.key_s[s]);
        for (size_t c = 0; c < plan.C; c += LANES) {
            const size_t left = plan.C - c;
            store_next(row + c, load_next(row + c, left) + load(update + c), left);
        }
    }
}

}  // namespace

const Word2Vec word2vec = {learn, add};

}  // namespace chainrule::CHAINRULE_ISA
