#include "ops/elementwise.hpp"

#include "bind/kernels.hpp"

namespace chainrule {

void bind_elementwise(nb::module_& m) {
    bind_elements(m, "add", elementwise, &Elementwise::add, "y", "a", "b");
    bind_elements(m, "mul", elementwise, &Elementwise::mul, "y", "a", "b");
}

}  // namespace chainrule
