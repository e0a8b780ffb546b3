#include "gemm/gemm.hpp"

#include "bind/arrays.hpp"
#include "runtime/row_sums.hpp"

namespace chainrule {
namespace {

using Strided = nb::ndarray<float, nb::ndim<3>, nb::device::cpu>;
using ConstStrided = nb::ndarray<const float, nb::ndim<3>, nb::device::cpu>;

View view(const ConstStrided& x) {
    return {x.data(), static_cast<size_t>(x.stride(1)), static_cast<size_t>(x.stride(2))};
}

// c (B, M, N) = or += a (B, M, K) b (B, K, N) + bias (N,). a and b have any strides, c contiguous rows.
void batched_gemm(Strided c, ConstStrided a, ConstStrided b, std::optional<ConstVector> bias, bool accumulate,
             int precision) {
    const size_t B = c.shape(0), M = c.shape(1), N = c.shape(2), K = a.shape(2);
    if (a.shape(0) != B || b.shape(0) != B || a.shape(1) != M || b.shape(1) != K || b.shape(2) != N)
        throw std::invalid_argument("the shapes of c, a and b do not fit");
    if (N > 1 && c.stride(2) != 1) throw std::invalid_argument("the rows of c must be contiguous");
    if (accumulate) reads_too("gemm", c);
    const float* bias_n = pointer_or_null(bias, "bias", N);
    const Precision rounding = as_precision(precision);
    const size_t ldc = static_cast<size_t>(c.stride(1));
    float* c_data = c.data();
    const View a_view = view(a), b_view = view(b);
    const auto a_step = a.stride(0), b_step = b.stride(0), c_step = c.stride(0);

    WithoutGil release;
    auto one = [&](size_t i) {
        const auto n = static_cast<ptrdiff_t>(i);
        gemm(c_data + n * c_step, ldc, {a_view.data + n * a_step, a_view.row, a_view.col},
             {b_view.data + n * b_step, b_view.row, b_view.col}, bias_n, accumulate, M, N, K, rounding);
    };
    if (B >= 4)  // enough for all threads, each with whole GEMMs
        parallel_for(B, one);
    else
        for (size_t i = 0; i < B; ++i) one(i);
}

// out (C,) += the sum of the rows of x (R, C).
void column_sums(Vector out, ConstMatrix x) {
    const size_t R = x.shape(0), C = x.shape(1);
    reads_too("column_sums", out);
    float* out_c = pointer(out, "out", C);
    const float* x_rc = x.data();
    WithoutGil release;
    add_row_sums({out_c}, C, R, C, [&](float* partial_c, size_t r, size_t rows) {
        gemm_kernels().column_sums(partial_c, x_rc + r * C, C, rows, C);
    });
}

}  // namespace

void bind_gemm(nb::module_& m) {
    def(m, "gemm", batched_gemm, "c", "a", "b", "bias", "accumulate", "precision");
    def(m, "column_sums", column_sums, "out", "x");
}

}  // namespace chainrule
