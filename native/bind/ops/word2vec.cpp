#include "ops/word2vec.hpp"

#include "bind/ids.hpp"

namespace chainrule {
namespace {

void check(bool fits, const std::string& rule) {
    if (!fits) throw std::invalid_argument(rule);
}

void train(Matrix input, Matrix output, Array<const int32_t, 1> ids, Array<const uint32_t, 1> accept,
           Array<const int32_t, 1> other, const Key& key, size_t first, size_t last, size_t window,
           size_t negatives, bool average, float lr, size_t count, size_t chunks) {
    const size_t V = input.shape(0), C = input.shape(1), N = ids.size();
    const WordPlan plan = {{input.data(), pointer(output, "output", V * C)}, ids.data(), pointer(accept, "accept", V),
                     pointer(other, "other", V), {{key[0], key[1], key[2], key[3], key[4]}, 0}, N, V, C, window,
                     negatives, lr, average};
    check(V > 0 && C > 0 && 2 * V <= UINT32_MAX, "the tables must have rows and columns");
    check(1 <= window && window <= MOST_WINDOW, "window must be from 1 to " + std::to_string(MOST_WINDOW));
    check(first <= last && last <= N, "first and last must be positions in ids");
    check(count > 0 && chunks > 0, "count and chunks must be at least 1");
    const size_t from = first - std::min(first, window), to = std::min(N, last + window);
    check_ids(ids.data() + from, to - from, "ids", -1, V);
    check_ids(other.data(), V, "other", 0, V);

    WithoutGil release;
    word2vec_train(plan, first, last, count, chunks);
}

}  // namespace

void bind_word2vec(nb::module_& m) {
    def(m, "word2vec_train", train, "input", "output", "ids", "accept", "other", "key", "first", "last", "window",
        "negatives", "average", "lr", "count", "chunks");
}

}  // namespace chainrule
