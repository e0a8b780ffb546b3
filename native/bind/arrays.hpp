// Shared by the bindings: array types and checks of sizes. A binding takes C-contiguous arrays of exactly its dtype
// (nothing is ever converted), checks the sizes, releases the GIL and calls the kernel on blocks or a driver.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind/recordable.hpp"
#include "gemm/gemm.hpp"
#include "runtime/pool.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace chainrule {

template <class Scalar, int ndim>
using Array = nb::ndarray<Scalar, nb::ndim<ndim>, nb::c_contig, nb::device::cpu>;
using Matrix = Array<float, 2>;
using Vector = Array<float, 1>;
using ConstMatrix = Array<const float, 2>;
using ConstVector = Array<const float, 1>;
template <class Scalar>
using Flat = nb::ndarray<Scalar, nb::c_contig, nb::device::cpu>;  // any number of axes, seen as one

// Releases the GIL while a kernel runs; a replay has released it for all of its kernels. At exit the interpreter waits
// for running kernels; a kernel that a daemon thread starts after that never returns, since taking the GIL then would
// abort the process.
class WithoutGil {
public:
    WithoutGil();
    ~WithoutGil();
    WithoutGil(const WithoutGil&) = delete;

private:
    PyThreadState* state_;
};

template <class Body>
auto without_gil(Body&& body) {
    WithoutGil release;
    return body();
}

// How an argument of a bound function is annotated: arrays are never converted, an optional one may be None.
template <class T>
struct Annotated {
    static auto argument(const char* name) { return nb::arg(name); }
};
template <class... Options>
struct Annotated<nb::ndarray<Options...>> {
    static auto argument(const char* name) { return nb::arg(name).noconvert(); }
};
template <class... Options>
struct Annotated<std::optional<nb::ndarray<Options...>>> {
    static auto argument(const char* name) { return nb::arg(name).noconvert().none(); }
};

template <class Result, class... Args, class... Names>
void def(nb::module_& m, const char* name, Result (*function)(Args...), Names... names) {
    m.def(name, recordable(name, function), Annotated<std::decay_t<Args>>::argument(names)...);
}

template <class A>
auto pointer(const A& array, const char* name, size_t expected) {
    if (array.size() != expected)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(array.size()) +
                                    " elements, expected " + std::to_string(expected));
    return array.data();
}

// An array of any number of axes, seen as R rows of its last axis.
struct Rows {
    Rows(size_t R, size_t C) : R(R), C(C) {}
    template <class A>
    explicit Rows(const A& array) : R(1), C(array.ndim() ? array.shape(array.ndim() - 1) : 1) {
        for (size_t axis = 0; axis + 1 < array.ndim(); ++axis) R *= array.shape(axis);
    }
    size_t R, C;
};

inline Precision as_precision(int index) {  // as in PRECISIONS of native.py; 3 is for tests
    if (index < 0 || index > 3 || (index == 3 && !bf16_pairs_can_run()))
        throw std::invalid_argument("precision must be 0 (fp32), 1 (bf16), 2 (fp16) or, if the CPU can, 3 (bf16 in pairs)");
    return static_cast<Precision>(index);
}

template <class A>
auto pointer_or_null(const std::optional<A>& array, const char* name, size_t expected) {
    return array ? pointer(*array, name, expected) : nullptr;
}

}  // namespace chainrule
