// word2vec on the pool. The chunks of a round start from the same tables and add their updates in order, row by row, so
// the result does not depend on which thread does what.
#include "ops/word2vec.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/pool.hpp"

namespace chainrule {
namespace {

constexpr size_t ROW = 16;  // copies of rows are padded with zeros to whole vectors

// A chunk with its memory.
struct OwnedChunk : WordChunk {
    OwnedChunk(const WordPlan& plan, size_t count) {
        const size_t T = word_targets(plan.negatives), inputs = count + 2 * plan.window;
        const size_t most = 1 + inputs + count * (1 + plan.negatives), window = std::max<size_t>(2, 2 * plan.window);
        stride = (plan.C + ROW - 1) / ROW * ROW;
        for (buckets = 64; buckets < 2 * most;) buckets *= 2;
        const size_t g = window * T + ROW, floats = (most + window + T) * stride + g;
        const size_t integers = 2 * most + buckets + inputs + count * (T + 1 + 8 * word_draws(plan.negatives));
        floats_.reset(new float[floats]());
        integers_.reset(new uint32_t[integers]());
        row_sc = floats_.get();
        x_mc = row_sc + most * stride;
        y_tc = x_mc + window * stride;
        g_mt = y_tc + T * stride;
        key_s = integers_.get();
        order_s = key_s + most;
        slot_h = order_s + most;
        input_p = slot_h + buckets;
        target_pt = input_p + inputs;
        reach_p = target_pt + count * T;
        random = reinterpret_cast<int32_t*>(reach_p + count);
    }

private:
    std::unique_ptr<float[]> floats_;
    std::unique_ptr<uint32_t[]> integers_;
};

}  // namespace

void word2vec_train(const WordPlan& plan, size_t first, size_t last, size_t count, size_t chunks) {
    std::vector<OwnedChunk> chunk;
    for (size_t i = 0; i < chunks; ++i) chunk.emplace_back(plan, count);
    for (; first < last; first += chunks * count) {
        const size_t running = std::min(chunks, (last - first + count - 1) / count);
        parallel_for(running, [&](size_t i) {
            const size_t start = first + i * count;
            word2vec().learn(chunk[i], plan, start, std::min(count, last - start));
        });
        parallel_for(WORD_SHARDS, [&](size_t shard) {
            for (size_t i = 0; i < running; ++i) word2vec().add(plan, chunk[i], shard);
        });
    }
}

}  // namespace chainrule
