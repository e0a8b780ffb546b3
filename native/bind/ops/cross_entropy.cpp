#include "ops/cross_entropy.hpp"

#include "bind/kernels.hpp"

namespace chainrule {

void bind_cross_entropy(nb::module_& m) {
    bind_rows(m, "cross_entropy_forward", cross_entropy, &CrossEntropy::forward, per_row("loss"), per_row("peak"),
              per_row("total"), "x", column_ids("target"), per_row("scale"), "gap", "floor");
    bind_rows(m, "cross_entropy_backward", cross_entropy, &CrossEntropy::backward, "dx", "x", per_row("peak"),
              per_row("total"), column_ids("target"), per_row("scale"), "gap", "floor");
}

}  // namespace chainrule
