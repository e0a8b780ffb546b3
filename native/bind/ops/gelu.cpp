#include "ops/gelu.hpp"

#include "bind/kernels.hpp"

namespace chainrule {

void bind_gelu(nb::module_& m) {
    bind_elements(m, "gelu_forward", gelu, &Gelu::forward, "y", "x");
    bind_elements(m, "gelu_backward", gelu, &Gelu::backward, "dx", "x", "dy");
    bind_elements(m, "gelu_tanh_forward", gelu, &Gelu::tanh_forward, "y", "x");
    bind_elements(m, "gelu_tanh_backward", gelu, &Gelu::tanh_backward, "dx", "x", "dy");
}

}  // namespace chainrule
