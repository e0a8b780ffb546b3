#pragma once

#include <stdint.h>

#include "runtime/isa.hpp"
#include "runtime/philox.hpp"

namespace chainrule {

constexpr size_t WORD_SHARDS = 8;  // into which the rows of both tables are split when changes are added
constexpr size_t TARGET_TILE = 3;  // targets whose rows stay in registers together
constexpr size_t MOST_WINDOW = 64;  // words on either side

// What all chunks of a call share.
struct WordPlan {
    float* table_vc[2];          // of words as inputs, of words as targets
    const int32_t* id_n;         // the text; negative at a boundary, over which no window reaches
    const uint32_t* accept_v;    // alias table: a draw in column v is v itself below accept_v[v], else other_v[v]
    const int32_t* other_v;
    KeepMask draws;              // names the stream of random words; its threshold is not used
    size_t N, V, C, window, negatives;
    float lr;
    bool average;                // false: every word of the window predicts the centre; true: their mean does (CBOW)
};

// One chunk of the text at work: copies of the rows it needs, which it alone changes.
struct WordChunk {
    float* row_sc;        // slot 0 is a row of zeros, the others are copies, then their changes
    uint32_t* key_s;      // 2 id + which table
    size_t slots, stride;
    uint32_t* slot_h;     // hash table from key to slot, 0 where empty
    size_t places;        // of it, a power of two
    uint32_t* input_p;    // slots of the words from `window` before the first centre on
    uint32_t* target_pt;  // slots of each centre's targets: itself and the negatives, padded to whole tiles
    uint32_t* reach_p;    // the window of each centre, drawn from 1 .. window
    float *x_mc, *y_tc, *g_mt;  // inputs and targets of one window, and -lr ∂loss/∂score of its pairs
    int32_t* random;
    uint32_t* order_s;    // slots by shard; those of shard h are order_s[bound[h]] .. order_s[bound[h + 1] - 1]
    size_t bound[WORD_SHARDS + 1];
};

struct Word2Vec {
    // The centres first .. first + count, one after the other, on copies; leaves the changes in the chunk.
    void (*learn)(WordChunk& chunk, const WordPlan& plan, size_t first, size_t count);
    // Adds the changes to the rows of one shard.
    void (*add)(const WordPlan& plan, const WordChunk& chunk, size_t shard);
};
CHAINRULE_KERNELS(Word2Vec, word2vec)

inline size_t word_targets(size_t negatives) {  // of one centre, padded
    return (negatives + TARGET_TILE) / TARGET_TILE * TARGET_TILE;
}
inline size_t word_draws(size_t negatives) {  // blocks of eight random words for one centre: its window and negatives
    return (negatives + 8) / 8;
}

}  // namespace chainrule
