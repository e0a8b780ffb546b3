#include "ops/softmax.hpp"

#include "bind/kernels.hpp"

namespace chainrule {

void bind_softmax(nb::module_& m) {
    bind_rows(m, "softmax_forward", softmax, &Softmax::forward, "y", "x");
    bind_rows(m, "softmax_backward", softmax, &Softmax::backward, "dx", "y", "dy");
    bind_rows(m, "log_softmax_forward", softmax, &Softmax::log_forward, "y", "x");
    bind_rows(m, "log_softmax_backward", softmax, &Softmax::log_backward, "dx", "y", "dy");
}

}  // namespace chainrule
