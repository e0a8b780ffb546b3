#include "ops/softmax.hpp"

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

template <class Kernel>
void bind_forward(nb::module_& m, const char* name, Kernel kernel) {
    m.def(name, [kernel](Flat<float> y, Flat<const float> x) {
        const Rows size(x);
        float* y_rc = pointer(y, "y", x.size());
        const float* x_rc = x.data();

        WithoutGil release;
        for_rows(size.R, size.C, [&](size_t r, size_t rows) {
            kernel()(y_rc + r * size.C, x_rc + r * size.C, rows, size.C);
        });
    }, "y"_a.noconvert(), "x"_a.noconvert());
}

template <class Kernel>
void bind_backward(nb::module_& m, const char* name, Kernel kernel) {
    m.def(name, [kernel](Flat<float> dx, Flat<const float> y, Flat<const float> dy) {
        const Rows size(y);
        float* dx_rc = pointer(dx, "dx", y.size());
        const float* dy_rc = pointer(dy, "dy", y.size());
        const float* y_rc = y.data();

        WithoutGil release;
        for_rows(size.R, size.C, [&](size_t r, size_t rows) {
            kernel()(dx_rc + r * size.C, y_rc + r * size.C, dy_rc + r * size.C, rows, size.C);
        });
    }, "dx"_a.noconvert(), "y"_a.noconvert(), "dy"_a.noconvert());
}

}  // namespace

void bind_softmax(nb::module_& m) {
    bind_forward(m, "softmax_forward", [] { return softmax().forward; });
    bind_backward(m, "softmax_backward", [] { return softmax().backward; });
    bind_forward(m, "log_softmax_forward", [] { return softmax().log_forward; });
    bind_backward(m, "log_softmax_backward", [] { return softmax().log_backward; });
}

}  // namespace chainrule
