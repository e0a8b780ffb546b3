#include "ops/elementwise.hpp"

#include "bind/maps.hpp"

namespace chainrule {

void bind_elementwise(nb::module_& m) {
    bind_map_of_two(m, "add", [] { return elementwise().add; });
    bind_map_of_two(m, "mul", [] { return elementwise().mul; });
}

}  // namespace chainrule
