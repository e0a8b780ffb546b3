#include "simd/functions.hpp"

#include "bind/kernels.hpp"

namespace chainrule {

void bind_functions(nb::module_& m) {
    bind_elements(m, "exp", functions, &Functions::exp, "y", "x");
    bind_elements(m, "tanh", functions, &Functions::tanh, "y", "x");
    bind_elements(m, "sigmoid", functions, &Functions::sigmoid, "y", "x");
    bind_elements(m, "normal_cdf", functions, &Functions::normal_cdf, "y", "x");
}

}  // namespace chainrule
