#include "functions.hpp"

#include "arrays.hpp"

namespace chainrule {

void bind_functions(nb::module_& m) {
    using Function = void (*Functions::*)(float*, const float*, size_t);
    auto bind = [&](const char* name, Function function) {
        m.def(name, [function](Vector y, ConstVector x) {
            float* y_n = pointer(y, "y", x.size());
            const float* x_n = x.data();
            WithoutGil release;
            for_elements(x.size(), [&](size_t i, size_t n) { (functions().*function)(y_n + i, x_n + i, n); });
        }, "y"_a.noconvert(), "x"_a.noconvert());
    };
    bind("exp", &Functions::exp);
    bind("tanh", &Functions::tanh);
    bind("sigmoid", &Functions::sigmoid);
    bind("normal_cdf", &Functions::normal_cdf);
}

}  // namespace chainrule
