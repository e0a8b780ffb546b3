#include "simd/functions.hpp"

#include "bind/maps.hpp"

namespace chainrule {

void bind_functions(nb::module_& m) {
    bind_map(m, "exp", [] { return functions().exp; });
    bind_map(m, "tanh", [] { return functions().tanh; });
    bind_map(m, "sigmoid", [] { return functions().sigmoid; });
    bind_map(m, "normal_cdf", [] { return functions().normal_cdf; });
}

}  // namespace chainrule
