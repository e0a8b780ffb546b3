// Bindings of kernels whose arrays all have one shape, made from the kernel's own signature: a pointer becomes a
// C-contiguous array of any number of axes, anything else a constant; the sizes at its end are those of the arrays.
//
//     bind_elements(m, "gelu_backward", gelu, &Gelu::backward, "dx", "x", "dy");
#pragma once

#include <tuple>

#include "bind/arrays.hpp"

namespace chainrule {

template <class T>
struct Bound {  // a constant
    using Type = T;
    static size_t size(T) { return 0; }
    static T value(T constant, const char*, size_t) { return constant; }
    static T at(T constant, size_t) { return constant; }
};

template <class T>
struct Bound<T*> {  // an array; truth values are bytes to a kernel
    using Scalar = std::conditional_t<std::is_same_v<T, uint8_t>, bool,
                                      std::conditional_t<std::is_same_v<T, const uint8_t>, const bool, T>>;
    using Type = Flat<Scalar>;
    static size_t size(const Type& array) { return array.size(); }
    static T* value(const Type& array, const char* name, size_t expected) {
        return reinterpret_cast<T*>(pointer(array, name, expected));
    }
    static T* at(T* data, size_t i) { return data + i; }
};

// run(the first array, the values of the arguments) without the GIL. Arrays must have as many elements as the largest.
template <class... Args, class Run, size_t... I, class... Names>
void bind_signature(nb::module_& m, const char* function, Run run, std::index_sequence<I...>, Names... names) {
    using All = std::tuple<Args...>;
    m.def(
        function,
        [=](typename Bound<std::tuple_element_t<I, All>>::Type... given) {
            size_t size = 0;
            ((size = std::max(size, Bound<std::tuple_element_t<I, All>>::size(given))), ...);
            const std::tuple values{Bound<std::tuple_element_t<I, All>>::value(given, names, size)...};
            const auto& first = std::get<0>(std::tie(given...));
            WithoutGil release;
            run(first, std::get<I>(values)...);
        },
        Annotated<typename Bound<std::tuple_element_t<I, All>>::Type>::argument(names)...);
}

// kernel(arrays and constants ..., n), for any part of n elements
template <class Table, class... Args, class... Names>
void bind_elements(nb::module_& m, const char* function, const Table& (*table)(), void (*Table::*kernel)(Args...),
                   Names... names) {
    auto run = [=](const auto& first, auto... value) {
        for_elements(first.size(), [&](size_t i, size_t n) {
            (table().*kernel)(Bound<decltype(value)>::at(value, i)..., n);
        });
    };
    bind_signature<Args...>(m, function, run, std::make_index_sequence<sizeof...(Args) - 1>(), names...);
}

// kernel(arrays and constants ..., R, C), for any part of R rows; C is the last axis
template <class Table, class... Args, class... Names>
void bind_rows(nb::module_& m, const char* function, const Table& (*table)(), void (*Table::*kernel)(Args...),
               Names... names) {
    auto run = [=](const auto& first, auto... value) {
        const Rows size(first);
        for_rows(size.R, size.C, [&](size_t r, size_t rows) {
            (table().*kernel)(Bound<decltype(value)>::at(value, r * size.C)..., rows, size.C);
        });
    };
    bind_signature<Args...>(m, function, run, std::make_index_sequence<sizeof...(Args) - 2>(), names...);
}

}  // namespace chainrule
