// Bindings of kernels over rows or elements, made from the kernel's own signature: a pointer becomes a C-contiguous array
// of any number of axes, anything else a constant; the sizes at its end are those of the largest array.
//
//     bind_elements(m, "gelu_backward", gelu, &Gelu::backward, "dx", "x", "dy");
//     bind_rows(m, "rmsnorm_forward", rmsnorm, &Rmsnorm::forward, "y", per_row("rstd"), "x", per_column("gamma"), "eps");
#pragma once

#include <array>
#include <tuple>

#include "bind/ids.hpp"

namespace chainrule {

// An argument by its name. Arrays have the shape (R, C), unless they say that they have one of these axes only.
struct Operand {
    Operand(const char* name, bool rows = true, bool columns = true, bool ids = false)
        : name(name), rows(rows), columns(columns), ids(ids) {}
    const char* name;
    bool rows, columns;
    bool ids;  // its integers are ids of columns, which are checked
    size_t size(size_t R, size_t C) const { return (rows ? R : 1) * (columns ? C : 1); }
    size_t before(size_t r, size_t C) const { return rows ? size(r, C) : 0; }  // elements before row r
};
inline Operand per_row(const char* name) { return {name, true, false}; }
inline Operand per_column(const char* name) { return {name, false, true}; }
inline Operand column_ids(const char* name) { return {name, true, false, true}; }

template <class T>
struct Bound {  // a constant
    using Type = T;
    static void largest(Rows&, T, const Operand&) {}
    static T value(T constant, const Operand&, const Rows&) { return constant; }
    static T at(T constant, const Operand&, size_t, size_t) { return constant; }
};

template <class T>
struct Bound<T*> {  // an array; truth values are bytes to a kernel
    using Scalar = std::conditional_t<std::is_same_v<T, uint8_t>, bool,
                                      std::conditional_t<std::is_same_v<T, const uint8_t>, const bool, T>>;
    using Type = Flat<Scalar>;
    static void largest(Rows& size, const Type& array, const Operand& operand) {
        if (operand.rows && operand.columns && array.size() >= size.R * size.C) size = Rows(array);
    }
    static T* value(const Type& array, const Operand& operand, const Rows& size) {
        T* data = reinterpret_cast<T*>(pointer(array, operand.name, operand.size(size.R, size.C)));
        if constexpr (std::is_integral_v<T>)
            if (operand.ids) check_ids(data, array.size(), operand.name, 0, size.C);
        return data;
    }
    static T* at(T* data, const Operand& operand, size_t r, size_t C) { return data + operand.before(r, C); }
};

// kernel(arrays and constants ..., sizes), without the GIL, for any part of the rows; elements are rows of one
template <bool elements, class Table, class... Args, size_t... I, class... Names>
void bind_signature(nb::module_& m, const char* function, const Table& (*table)(), void (*Table::*kernel)(Args...),
                    std::index_sequence<I...>, Names... names) {
    using All = std::tuple<Args...>;
    const auto run =
        [=, operands = std::array{Operand(names)...}](const typename Bound<std::tuple_element_t<I, All>>::Type&... given) {
            Rows size{0, 0};
            (Bound<std::tuple_element_t<I, All>>::largest(size, given, operands[I]), ...);
            if (elements) size = {size.R * size.C, 1};
            const size_t C = size.C;
            const std::tuple value{Bound<std::tuple_element_t<I, All>>::value(given, operands[I], size)...};
            WithoutGil release;
            for_rows(size.R, C, [&](size_t r, size_t rows) {
                auto part = [&](auto... sizes) {
                    (table().*kernel)(Bound<std::tuple_element_t<I, All>>::at(std::get<I>(value), operands[I], r, C)...,
                                      sizes...);
                };
                if constexpr (elements)
                    part(rows);
                else
                    part(rows, C);
            });
        };
    m.def(
        function,
        [=](typename Bound<std::tuple_element_t<I, All>>::Type... given) { call_recorded(function, run, given...); },
        Annotated<typename Bound<std::tuple_element_t<I, All>>::Type>::argument(Operand(names).name)...);
}

// kernel(arrays and constants ..., n)
template <class Table, class... Args, class... Names>
void bind_elements(nb::module_& m, const char* function, const Table& (*table)(), void (*Table::*kernel)(Args...),
                   Names... names) {
    bind_signature<true>(m, function, table, kernel, std::make_index_sequence<sizeof...(Args) - 1>(), names...);
}

// kernel(arrays and constants ..., R, C); C is the last axis
template <class Table, class... Args, class... Names>
void bind_rows(nb::module_& m, const char* function, const Table& (*table)(), void (*Table::*kernel)(Args...),
               Names... names) {
    bind_signature<false>(m, function, table, kernel, std::make_index_sequence<sizeof...(Args) - 2>(), names...);
}

}  // namespace chainrule
