#pragma once

#include <stdint.h>

#include "runtime/isa.hpp"
#include "runtime/philox.hpp"

namespace chainrule {

constexpr size_t WORD_SHARDS = 8;   // of the rows of both tables: updates are added shard by shard
constexpr size_t TARGET_TILE = 3;   // targets whose rows stay in registers together
constexpr size_t MOST_WINDOW = 64;  // words on either side

// What all chunks of a call share.
struct WordPlan {
    float* table_vc[2];        // embeddings of words as inputs, and as targets
    const int32_t* id_n;       // the text; negative at a boundary, which no window crosses
    const uint32_t* accept_v;  // alias table: a draw in column v is v itself below accept_v[v], else other_v[v]
    const int32_t* other_v;
    KeepMask draws;            // the random stream; its threshold is not used
    size_t N, V, C, window, negatives;
    float lr;
    bool average;              // CBOW: the mean of the window predicts the center; else each of its words does
};

// A chunk of the text, with its own copies of the rows it needs.
struct WordChunk {
    float* row_sc;        // slot 0 is a row of zeros; the others are copies of rows, in the end their updates
    uint32_t* key_s;      // 2 id + which table
    size_t slots, stride;
    uint32_t* slot_h;     // hash table from key to slot, 0 where empty
    size_t buckets;       // of the hash table, a power of two
    uint32_t* input_p;    // slots of the words from `window` before the first center on
    uint32_t* target_pt;  // slots of each center's targets: itself and the negatives, padded to whole tiles
    uint32_t* reach_p;    // the window of each center, drawn from 1 .. window
    float *x_mc, *y_tc, *g_mt;  // inputs and targets of one window, and -lr ∂loss/∂score of its pairs
    int32_t* random;
    uint32_t* order_s;    // slots by shard; those of shard h are order_s[bound[h]] .. order_s[bound[h + 1] - 1]
    size_t bound[WORD_SHARDS + 1];
};

struct Word2Vec {
    // Trains on the centers first .. first + count in order, on copies of the rows; leaves their updates in the chunk.
    void (*learn)(WordChunk& chunk, const WordPlan& plan, size_t first, size_t count);
    // Adds the updates to the rows of one shard.
    void (*add)(const WordPlan& plan, const WordChunk& chunk, size_t shard);
};
CHAINRULE_KERNELS(Word2Vec, word2vec)

// The centers first .. last on the pool, in rounds of `chunks` chunks of `count` centers.
void word2vec_train(const WordPlan& plan, size_t first, size_t last, size_t count, size_t chunks);

static inline size_t word_targets(size_t negatives) {  // of one center, padded
    return (negatives + TARGET_TILE) / TARGET_TILE * TARGET_TILE;
}
static inline size_t word_draws(size_t negatives) {  // blocks of eight random words per center: its window and negatives
    return (negatives + 8) / 8;
}

}  // namespace chainrule
