// The highest of many scores without a full sort: top-k and top-p. Of equal scores the first counts as the higher.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainrule {

struct Edge {
    size_t count;
    float score;  // the lowest of the `count` highest
};

// The fewest highest scores, at least one, whose weights add up to `mass`, or all with a positive weight if rounding
// keeps the total below it. Sums are made in double. No score is NaN, and the first of the highest has a positive weight.
// The caller guarantees that scores with a weight below `least` are not among the result.
Edge fewest(const float* score_n, const float* weight_n, size_t n, double mass, double least);

// The same with weights softmax(score), and `fraction` of their sum as the mass: top-p.
Edge likeliest(const float* score_n, size_t n, double fraction);

// The indices of the n highest of V scores, the highest first; n is at most V.
void highest(int64_t* place_n, const float* score_v, size_t V, size_t n);

}  // namespace chainrule
