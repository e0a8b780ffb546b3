#include "ops/gelu.hpp"

#include "bind/maps.hpp"

namespace chainrule {

void bind_gelu(nb::module_& m) {
    bind_map(m, "gelu_forward", [] { return gelu().forward; });
    bind_map_of_two(m, "gelu_backward", [] { return gelu().backward; });
    bind_map(m, "gelu_tanh_forward", [] { return gelu().tanh_forward; });
    bind_map_of_two(m, "gelu_tanh_backward", [] { return gelu().tanh_backward; });
}

}  // namespace chainrule
