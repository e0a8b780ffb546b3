#include "ops/cross_entropy.hpp"

#include "bind/kernels.hpp"

namespace chainrule {
namespace {

// The class and the weight of each row: an ignored row has weight 0 and class 0. For a mean the weights sum to 1, unless
// no row counts.
void targets(Array<int64_t, 1> target, Vector scale, Ids ids, std::optional<int64_t> ignored, bool mean) {
    const size_t N = ids.size();
    int64_t* target_n = pointer(target, "target", N);
    float* scale_n = pointer(scale, "scale", N);
    const int64_t* id_n = ids.data();

    WithoutGil release;
    size_t counted = N;
    if (ignored) counted -= static_cast<size_t>(std::count(id_n, id_n + N, *ignored));
    const float weight = mean && counted ? 1.0f / static_cast<float>(counted) : 1.0f;
    for (size_t n = 0; n < N; ++n) {
        const bool counts = !ignored || id_n[n] != *ignored;
        target_n[n] = counts ? id_n[n] : 0;
        scale_n[n] = counts ? weight : 0.0f;
    }
}

// Each row is a class of its own, except for those that are ignored.
void diagonal_targets(Array<int64_t, 1> own, Ids ids, int64_t ignored) {
    const size_t N = ids.size();
    int64_t* own_n = pointer(own, "own", N);
    for (size_t n = 0; n < N; ++n) own_n[n] = ids.data()[n] == ignored ? ignored : static_cast<int64_t>(n);
}

// The place of each target among `ids`, and behind them all if it is not there.
void targets_among(Array<int64_t, 1> found, Ids target, Ids ids) {
    const size_t N = target.size();
    int64_t* found_n = pointer(found, "found", N);
    const int64_t *begin = ids.data(), *end = begin + ids.size();
    for (size_t n = 0; n < N; ++n) found_n[n] = std::find(begin, end, target.data()[n]) - begin;
}

}  // namespace

void bind_cross_entropy(nb::module_& m) {
    bind_rows(m, "cross_entropy_forward", cross_entropy, &CrossEntropy::forward, per_row("loss"), per_row("peak"),
              per_row("total"), "x", column_ids("target"), per_row("scale"), "gap", "floor");
    bind_rows(m, "cross_entropy_backward", cross_entropy, &CrossEntropy::backward, "dx", "x", per_row("peak"),
              per_row("total"), column_ids("target"), per_row("scale"), "gap", "floor");
    m.def("cross_entropy_targets", recordable("cross_entropy_targets", targets), "target"_a.noconvert(),
          "scale"_a.noconvert(), "ids"_a.noconvert(), "ignored"_a.none(), "mean"_a);
    def(m, "targets_among", targets_among, "found", "target", "ids");
    def(m, "diagonal_targets", diagonal_targets, "own", "ids", "ignored");
}

}  // namespace chainrule
