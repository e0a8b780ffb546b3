#include "decode/select.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nanobind/stl/pair.h>

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

std::pair<size_t, float> fewest_of(ConstVector scores, ConstVector weights, double mass) {
    const float* weight_n = pointer(weights, "weights", scores.size());
    if (std::none_of(weight_n, weight_n + scores.size(), [](float weight) { return weight >= 0; }))
        throw std::invalid_argument("some weight must be at least 0");
    WithoutGil release;
    const Edge edge = fewest(scores.data(), weight_n, scores.size(), mass, 0);
    return {edge.count, edge.score};
}

std::pair<size_t, float> likeliest_of(ConstVector scores, double fraction) {
    const float *score_n = scores.data(), *end = score_n + scores.size();
    if (std::none_of(score_n, end, [](float score) { return std::isfinite(score); }) || !(0 <= fraction && fraction <= 1))
        throw std::invalid_argument("some score must be finite, and the fraction from 0 to 1");
    WithoutGil release;
    const Edge edge = likeliest(score_n, scores.size(), fraction);
    return {edge.count, edge.score};
}

void highest_of(Array<int64_t, 2> places, ConstMatrix scores) {
    const size_t R = scores.shape(0), V = scores.shape(1), n = places.shape(1);
    if (places.shape(0) != R || n > V)
        throw std::invalid_argument("places must have a row for each of scores, at most as wide");
    WithoutGil release;
    for_rows(R, V, [&](size_t first, size_t count) {
        for (size_t r = first; r < first + count; ++r) highest(places.data() + r * n, scores.data() + r * V, V, n);
    });
}

}  // namespace

void bind_select(nb::module_& m) {
    def(m, "fewest", fewest_of, "scores", "weights", "mass");
    def(m, "likeliest", likeliest_of, "scores", "fraction");
    def(m, "highest", highest_of, "places", "scores");
}

}  // namespace chainrule
