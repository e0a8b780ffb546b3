// Bindings of kernels that work on each element by itself, for arrays of any shape.
#pragma once

#include "bind/arrays.hpp"

namespace chainrule {

// kernel() is the function of the CPU level in use.
template <class Kernel>
void bind_map(nb::module_& m, const char* name, Kernel kernel) {
    m.def(name, [kernel](Flat<float> y, Flat<const float> x) {
        float* y_n = pointer(y, "y", x.size());
        const float* x_n = x.data();
        WithoutGil release;
        for_elements(x.size(), [&](size_t i, size_t n) { kernel()(y_n + i, x_n + i, n); });
    }, "y"_a.noconvert(), "x"_a.noconvert());
}

template <class Kernel>
void bind_map_of_two(nb::module_& m, const char* name, Kernel kernel) {
    m.def(name, [kernel](Flat<float> y, Flat<const float> a, Flat<const float> b) {
        float* y_n = pointer(y, "y", a.size());
        const float* b_n = pointer(b, "b", a.size());
        const float* a_n = a.data();
        WithoutGil release;
        for_elements(a.size(), [&](size_t i, size_t n) { kernel()(y_n + i, a_n + i, b_n + i, n); });
    }, "y"_a.noconvert(), "a"_a.noconvert(), "b"_a.noconvert());
}

}  // namespace chainrule
