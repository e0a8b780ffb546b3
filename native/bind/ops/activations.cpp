#include "ops/activations.hpp"

#include "bind/kernels.hpp"

namespace chainrule {

void bind_activations(nb::module_& m) {
    bind_elements(m, "sigmoid_backward", activations, &Activations::sigmoid_backward, "dx", "y", "dy");
    bind_elements(m, "tanh_backward", activations, &Activations::tanh_backward, "dx", "y", "dy");
    bind_elements(m, "relu_forward", activations, &Activations::relu_forward, "y", "x");
    bind_elements(m, "relu_backward", activations, &Activations::relu_backward, "dx", "y", "dy");
    bind_elements(m, "silu_forward", activations, &Activations::silu_forward, "y", "x");
    bind_elements(m, "silu_backward", activations, &Activations::silu_backward, "dx", "x", "dy");
    bind_elements(m, "swiglu_forward", activations, &Activations::swiglu_forward, "y", "gate", "up");
    bind_elements(m, "swiglu_backward", activations, &Activations::swiglu_backward, "dgate", "dup", "gate", "up", "dy");
}

}  // namespace chainrule
