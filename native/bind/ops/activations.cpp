#include "ops/activations.hpp"

#include "bind/maps.hpp"

namespace chainrule {
namespace {

void swiglu_backward(Flat<float> dgate, Flat<float> dup, Flat<const float> gate, Flat<const float> up,
                     Flat<const float> dy) {
    const size_t size = gate.size();
    float* dgate_n = pointer(dgate, "dgate", size);
    float* dup_n = pointer(dup, "dup", size);
    const float* up_n = pointer(up, "up", size);
    const float* dy_n = pointer(dy, "dy", size);
    const float* gate_n = gate.data();

    WithoutGil release;
    for_elements(size, [&](size_t i, size_t n) {
        activations().swiglu_backward(dgate_n + i, dup_n + i, gate_n + i, up_n + i, dy_n + i, n);
    });
}

}  // namespace

void bind_activations(nb::module_& m) {
    bind_map_of_two(m, "sigmoid_backward", [] { return activations().sigmoid_backward; });
    bind_map_of_two(m, "tanh_backward", [] { return activations().tanh_backward; });
    bind_map(m, "relu_forward", [] { return activations().relu_forward; });
    bind_map_of_two(m, "relu_backward", [] { return activations().relu_backward; });
    bind_map(m, "silu_forward", [] { return activations().silu_forward; });
    bind_map_of_two(m, "silu_backward", [] { return activations().silu_backward; });
    bind_map_of_two(m, "swiglu_forward", [] { return activations().swiglu_forward; });
    m.def("swiglu_backward", &swiglu_backward, "dgate"_a.noconvert(), "dup"_a.noconvert(),
          "gate"_a.noconvert(), "up"_a.noconvert(), "dy"_a.noconvert());
}

}  // namespace chainrule
