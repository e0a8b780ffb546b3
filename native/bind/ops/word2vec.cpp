#include "ops/word2vec.hpp"

#include <nanobind/stl/array.h>

#include <memory>

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

constexpr size_t ROW = 16;  // local rows are padded with zeros to whole vectors

void check(bool fits, const std::string& rule) {
    if (!fits) throw std::invalid_argument(rule);
}

void check_ids(const int32_t* id, size_t count, const char* name, int32_t lowest, size_t limit) {
    for (size_t i = 0; i < count; ++i)
        if (id[i] < lowest || id[i] >= static_cast<int64_t>(limit))
            throw std::invalid_argument(std::string(name) + " holds " + std::to_string(id[i]) + ", expected " +
                                        std::to_string(lowest) + " to " + std::to_string(limit - 1));
}

// A chunk and the memory it works in.
struct Lane : WordChunk {
    Lane(const WordPlan& plan, size_t count) {
        const size_t T = word_targets(plan.negatives), inputs = count + 2 * plan.window;
        const size_t most = 1 + inputs + count * (1 + plan.negatives), window = std::max<size_t>(2, 2 * plan.window);
        stride = (plan.C + ROW - 1) / ROW * ROW;
        for (places = 64; places < 2 * most;) places *= 2;
        const size_t g = window * T + ROW, floats = (most + window + T) * stride + g;
        const size_t integers = 2 * most + places + inputs + count * (T + 1 + 8 * word_draws(plan.negatives));
        real_.reset(new float[floats]());
        whole_.reset(new uint32_t[integers]());
        row_sc = real_.get();
        x_mc = row_sc + most * stride;
        y_tc = x_mc + window * stride;
        g_mt = y_tc + T * stride;
        key_s = whole_.get();
        order_s = key_s + most;
        slot_h = order_s + most;
        input_p = slot_h + places;
        target_pt = input_p + inputs;
        reach_p = target_pt + count * T;
        random = reinterpret_cast<int32_t*>(reach_p + count);
    }

private:
    std::unique_ptr<float[]> real_;
    std::unique_ptr<uint32_t[]> whole_;
};

// Rounds of `lanes` chunks of `count` centres. The chunks of a round start from the same tables and add their changes in
// order, row by row: which thread does what cannot matter.
void train(Matrix input, Matrix output, Array<const int32_t, 1> ids, Array<const uint32_t, 1> accept,
           Array<const int32_t, 1> other, const std::array<uint64_t, 5>& key, size_t first, size_t last, size_t window,
           size_t negatives, bool average, float lr, size_t count, size_t lanes) {
    const size_t V = input.shape(0), C = input.shape(1), N = ids.size();
    WordPlan plan = {{input.data(), pointer(output, "output", V * C)}, ids.data(), pointer(accept, "accept", V),
                     pointer(other, "other", V), {{key[0], key[1], key[2], key[3], key[4]}, 0}, N, V, C, window,
                     negatives, lr, average};
    check(V > 0 && C > 0 && 2 * V <= UINT32_MAX, "the tables must have rows and columns");
    check(1 <= window && window <= MOST_WINDOW, "window must be from 1 to " + std::to_string(MOST_WINDOW));
    check(first <= last && last <= N, "first and last must be positions in ids");
    check(count > 0 && lanes > 0, "count and lanes must be at least 1");
    const size_t from = first - std::min(first, window), to = std::min(N, last + window);
    check_ids(ids.data() + from, to - from, "ids", -1, V);
    check_ids(other.data(), V, "other", 0, V);

    WithoutGil release;
    std::vector<Lane> chunks;
    for (size_t i = 0; i < lanes; ++i) chunks.emplace_back(plan, count);
    for (; first < last; first += lanes * count) {
        const size_t running = std::min(lanes, (last - first + count - 1) / count);
        parallel_for(running, [&](size_t i) {
            const size_t start = first + i * count;
            word2vec().learn(chunks[i], plan, start, std::min(count, last - start));
        });
        parallel_for(WORD_SHARDS, [&](size_t shard) {
            for (size_t i = 0; i < running; ++i) word2vec().add(plan, chunks[i], shard);
        });
    }
}

}  // namespace

void bind_word2vec(nb::module_& m) {
    m.def("word2vec_train", &train, "input"_a.noconvert(), "output"_a.noconvert(), "ids"_a.noconvert(),
          "accept"_a.noconvert(), "other"_a.noconvert(), "key"_a, "first"_a, "last"_a, "window"_a, "negatives"_a,
          "average"_a, "lr"_a, "count"_a, "lanes"_a);
}

}  // namespace chainrule
