#include "decode/select.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/memory.hpp"
#include "ops/softmax.hpp"

namespace chainrule {
namespace {

constexpr uint32_t SIGN = 0x80000000;

// The higher the score, the lower its rank; equal scores, also 0 and -0, have the same.
uint32_t rank_of(float score) {
    uint32_t bits;
    score += 0.0f;
    std::memcpy(&bits, &score, sizeof bits);
    return bits & SIGN ? bits : ~bits & ~SIGN;
}

float score_of(uint32_t rank) {
    const uint32_t bits = rank & SIGN ? rank : ~rank & ~SIGN;
    float score;
    std::memcpy(&score, &bits, sizeof bits);
    return score;
}

struct Candidate {
    uint32_t rank;
    float weight;
};
static_assert(sizeof(Candidate) == 2 * sizeof(float));

}  // namespace

// Radix select: bins by the upper bits of the rank; the candidates of the bin in which the mass is reached are binned by
// the next bits, until all that are left have one rank.
Edge fewest(const float* score_n, const float* weight_n, size_t n, double mass, double least) {
    const Scratch memory(2 * n);
    auto* const candidates = reinterpret_cast<Candidate*>(memory.data());
    size_t left = 0;
    for (size_t i = 0; i < n; ++i) {  // branch-free: the branch would be unpredictable
        candidates[left] = {rank_of(score_n[i]), weight_n[i]};
        left += weight_n[i] >= least;
    }
    double sum = 0;  // of all candidates that rank before those left
    for (const auto& [shift, bins] : {std::pair<int, uint32_t>{20, 4096}, {10, 1024}, {0, 1024}}) {
        const auto bin_of = [&, shift = shift, bins = bins](Candidate c) { return c.rank >> shift & (bins - 1); };
        std::vector<double> masses(bins);
        for (size_t i = 0; i < left; ++i) masses[bin_of(candidates[i])] += candidates[i].weight;
        uint32_t chosen = 0;
        double reached = sum;
        for (uint32_t bin = 0; bin < bins; ++bin) {
            if (masses[bin] == 0) continue;
            chosen = bin, sum = reached;
            reached += masses[bin];
            if (reached >= mass) break;
        }
        left = std::remove_if(candidates, candidates + left, [&](Candidate c) { return bin_of(c) != chosen; }) -
               candidates;
    }
    const float edge = score_of(candidates[0].rank);
    size_t count = 0;
    do sum += candidates[count++].weight;
    while (sum < mass && count < left);
    for (size_t i = 0; i < n; ++i) count += score_n[i] > edge;
    return {count, edge};
}

Edge likeliest(const float* score_n, size_t n, double fraction) {
    const Scratch weights(n);
    const float* weight_n = weights.data();
    softmax().forward(weights.data(), score_n, 1, n);
    double sums[8] = {};  // eight chains, so that no addition waits for the one before
    for (size_t i = 0; i < n; ++i) sums[i % 8] += weight_n[i];
    const double whole = std::accumulate(sums, sums + 8, 0.0);  // 1, but for rounding
    // Weights below the mean of the mass that need not be reached add up to no more than that mass.
    return fewest(score_n, weight_n, n, fraction * whole, (1 - fraction) * whole / n);
}

void highest(int64_t* place_n, const float* score_v, size_t V, size_t n) {
    struct Place {
        float score;
        int64_t place;
    };
    const auto before = [](Place a, Place b) { return a.score > b.score || (a.score == b.score && a.place < b.place); };
    std::vector<Place> heap(n);  // the best so far, the lowest of them on top
    for (size_t v = 0; v < n; ++v) heap[v] = {score_v[v], static_cast<int64_t>(v)};
    std::make_heap(heap.begin(), heap.end(), before);
    for (size_t v = n; n && v < V; ++v) {
        if (!(score_v[v] > heap[0].score)) continue;
        std::pop_heap(heap.begin(), heap.end(), before);
        heap.back() = {score_v[v], static_cast<int64_t>(v)};
        std::push_heap(heap.begin(), heap.end(), before);
    }
    std::sort_heap(heap.begin(), heap.end(), before);
    for (size_t i = 0; i < n; ++i) place_n[i] = heap[i].place;
}

}  // namespace chainrule
