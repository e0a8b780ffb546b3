#include "ops/word2vec.hpp"

#include <array>

#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

constexpr uint64_t KEY[5] = {2, 7, 1, 8, 2};
constexpr size_t N = 90, V = 13, C = 21, WINDOW = 3, NEGATIVES = 4, COUNT = 11, CHUNKS = 3;
constexpr double LR = 0.25;

struct Inputs {
    bool average;
    Floats table[2] = {numbers(V * C), numbers(V * C)};
    std::vector<int32_t> id = std::vector<int32_t>(N), other = std::vector<int32_t>(V);
    std::vector<uint32_t> accept = std::vector<uint32_t>(V, 0x90000000);
};

using Tables = std::array<Doubles, 2>;

// Training on one center, with all that its step needs read before anything is written.
void step(Tables& table, const Inputs& in, size_t p) {
    constexpr size_t DRAWS = 8 * ((NEGATIVES + 8) / 8);
    const auto draw = [&](size_t i) -> uint64_t { return random_word(KEY, p * DRAWS + i); };
    const int32_t center = in.id[p];
    if (center < 0) return;
    const size_t reach = 1 + (draw(0) * WINDOW >> 32);
    std::vector<int32_t> context, targets = {center};
    for (size_t i = 1; i <= reach && p >= i && in.id[p - i] >= 0; ++i) context.insert(context.begin(), in.id[p - i]);
    for (size_t i = 1; i <= reach && p + i < N && in.id[p + i] >= 0; ++i) context.push_back(in.id[p + i]);
    for (size_t i = 1; i <= NEGATIVES; ++i) {
        const uint64_t product = draw(i) * V;
        const auto column = static_cast<int32_t>(product >> 32);
        const int32_t drawn = static_cast<uint32_t>(product) < in.accept[column] ? column : in.other[column];
        if (drawn != center) targets.push_back(drawn);
    }
    const Tables old = table;
    const size_t M = context.size();
    for (size_t m = 0; m < (in.average ? std::min<size_t>(1, M) : M); ++m)
        for (size_t t = 0; t < targets.size(); ++t) {
            Doubles x(C);
            for (size_t k = 0; k < M; ++k)
                for (size_t c = 0; c < C; ++c)
                    x[c] += in.average ? old[0][context[k] * C + c] / M : k == m ? old[0][context[k] * C + c] : 0;
            double score = 0;
            for (size_t c = 0; c < C; ++c) score += x[c] * old[1][targets[t] * C + c];
            const double g = LR * ((t == 0) - sigmoid(score));
            for (size_t c = 0; c < C; ++c) {
                table[1][targets[t] * C + c] += g * x[c];
                for (size_t k = 0; k < M; ++k)
                    if (in.average || k == m)
                        table[0][context[k] * C + c] += g * old[1][targets[t] * C + c] / (in.average ? M : 1);
            }
        }
}

// In rounds: the chunks of one start from the same tables, and add what they changed.
Tables trained(const Inputs& in) {
    Tables table = {wide(in.table[0]), wide(in.table[1])};
    for (size_t first = 0; first < N; first += CHUNKS * COUNT) {
        const Tables before = table;
        for (size_t chunk = first; chunk < std::min(N, first + CHUNKS * COUNT); chunk += COUNT) {
            Tables own = before;
            for (size_t p = chunk; p < std::min(N, chunk + COUNT); ++p) step(own, in, p);
            for (size_t which : {0, 1})
                for (size_t i = 0; i < V * C; ++i) table[which][i] += own[which][i] - before[which][i];
        }
    }
    return table;
}

}  // namespace

void check_word2vec() {
    for (bool average : {false, true}) {
        Inputs in{average};
        const std::vector<int64_t> drawn = ids(N, V), others = ids(V, V);
        for (size_t i = 0; i < N; ++i) in.id[i] = i % 20 == 19 ? -1 : static_cast<int32_t>(drawn[i]);  // boundaries
        in.other.assign(others.begin(), others.end());
        const Tables want = trained(in);
        check(average ? "cbow" : "skip-gram", 1e-5, {{want[0], in.table[0]}, {want[1], in.table[1]}},
              [&](const std::vector<float*>& out) {
                  const WordPlan plan = {{out[0], out[1]}, in.id.data(), in.accept.data(), in.other.data(),
                                         KeepMask(KEY, 0), N, V, C, WINDOW, NEGATIVES, static_cast<float>(LR), average};
                  word2vec_train(plan, 0, N, COUNT, CHUNKS);
              });
    }
}

}  // namespace chainrule::tests
