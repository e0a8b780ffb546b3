// The Python module chainrule._native: checks the sizes, releases the GIL, calls the kernel.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "parallel.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace chainrule;

namespace {

template <class Scalar, int ndim>
using Array = nb::ndarray<Scalar, nb::ndim<ndim>, nb::c_contig, nb::device::cpu>;
using Matrix = Array<float, 2>;
using Vector = Array<float, 1>;
using ConstMatrix = Array<const float, 2>;
using ConstVector = Array<const float, 1>;

template <class A>
auto pointer(const A& array, const char* name, size_t expected) {
    if (array.size() != expected)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(array.size()) +
                                    " elements, expected " + std::to_string(expected));
    return array.data();
}

template <class A>
float* pointer_or_null(const std::optional<A>& array, const char* name, size_t expected) {
    return array ? pointer(*array, name, expected) : nullptr;
}

void layernorm_forward(Matrix y, Vector mean, Vector rstd,
                       ConstMatrix x, ConstVector gamma, ConstVector beta, float eps) {
    const size_t R = x.shape(0), C = x.shape(1);
    float* y_rc = pointer(y, "y", R * C);
    float* mean_r = pointer(mean, "mean", R);
    float* rstd_r = pointer(rstd, "rstd", R);
    const float* gamma_c = pointer(gamma, "gamma", C);
    const float* beta_c = pointer(beta, "beta", C);
    const float* x_rc = x.data();

    nb::gil_scoped_release release;
    parallel::layernorm_forward(y_rc, mean_r, rstd_r, x_rc, gamma_c, beta_c, eps, R, C);
}

void layernorm_backward(std::optional<Matrix> dx, std::optional<Vector> dgamma, std::optional<Vector> dbeta,
                        ConstMatrix x, ConstVector gamma, ConstVector mean, ConstVector rstd, ConstMatrix dy) {
    const size_t R = x.shape(0), C = x.shape(1);
    float* dx_rc = pointer_or_null(dx, "dx", R * C);
    float* dgamma_c = pointer_or_null(dgamma, "dgamma", C);
    float* dbeta_c = pointer_or_null(dbeta, "dbeta", C);
    if (!dgamma_c != !dbeta_c) throw std::invalid_argument("dgamma and dbeta come together or not at all");
    const float* gamma_c = pointer(gamma, "gamma", C);
    const float* mean_r = pointer(mean, "mean", R);
    const float* rstd_r = pointer(rstd, "rstd", R);
    const float* dy_rc = pointer(dy, "dy", R * C);
    const float* x_rc = x.data();

    nb::gil_scoped_release release;
    parallel::layernorm_backward(dx_rc, dgamma_c, dbeta_c, x_rc, gamma_c, mean_r, rstd_r, dy_rc, R, C);
}

std::vector<std::string> supported_levels() {
    size_t count;
    const Level* table = levels(&count);
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i)
        if (table[i].supported) names.emplace_back(table[i].name);
    return names;
}

}  // namespace

NB_MODULE(_native, m) {
    m.def("cpu_level", [] { return std::string(current_level().name); });
    m.def("cpu_levels", &supported_levels);
    m.def("set_cpu_level", [](const std::string& name) { return set_level(name.c_str()); }, "name"_a);
    m.def("set_threads", &set_threads, "count"_a);
    m.def("get_threads", &get_threads);

    m.def("layernorm_forward", &layernorm_forward, "y"_a.noconvert(), "mean"_a.noconvert(), "rstd"_a.noconvert(),
          "x"_a.noconvert(), "gamma"_a.noconvert(), "beta"_a.noconvert(), "eps"_a);
    m.def("layernorm_backward", &layernorm_backward, "dx"_a.noconvert().none(), "dgamma"_a.noconvert().none(),
          "dbeta"_a.noconvert().none(), "x"_a.noconvert(), "gamma"_a.noconvert(), "mean"_a.noconvert(),
          "rstd"_a.noconvert(), "dy"_a.noconvert());
}
