// The highest of many scores, without sorting them all. Of equal scores the first counts as the higher.
#pragma once

#include <cstddef>
#include <cstdint>

namespace chainrule {

struct Edge {
    size_t count;
    float score;  // the lowest of the `count` highest
};

// The fewest of the highest scores, at least one, whose weights add up to `mass`; if all together do not, by an error of
// rounding, those that add anything. Sums are made in double. No score is NaN, and the first of the highest has a
// positive weight. The caller knows that what weighs less than `least` comes after all that is asked for.
Edge fewest(const float* score_n, const float* weight_n, size_t n, double mass, double least);

// The same with weights softmax(score), and this share of their sum as the mass.
Edge likeliest(const float* score_n, size_t n, double share);

// The places of the n highest of V scores, the highest first; n is at most V.
void highest(int64_t* place_n, const float* score_v, size_t V, size_t n);

}  // namespace chainrule
