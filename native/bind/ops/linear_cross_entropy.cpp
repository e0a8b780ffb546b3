#include "ops/linear_cross_entropy.hpp"

#include "bind/ids.hpp"

namespace chainrule {
namespace {

LinearCrossEntropy checked(ConstMatrix x, ConstMatrix w, Ids target, ConstVector scale, float gap, float floor,
                           size_t rows, int precision) {
    const size_t N = x.shape(0), C = x.shape(1), V = w.shape(0);
    if (rows == 0) throw std::invalid_argument("chunk must be at least 1");
    return {x.data(), pointer(w, "w", V * C), pointer(scale, "scale", N), id_pointer(target, "target", N, V), gap, floor,
            N,        V,                      C,                          rows, as_precision(precision)};
}

void forward(Vector loss, Vector peak, Vector total, ConstMatrix x, ConstMatrix w, Ids target, ConstVector scale,
             float gap, float floor, size_t rows, int precision, std::optional<Matrix> dx, std::optional<Matrix> dw,
             bool adds, std::optional<ConstVector> slope) {
    if (adds) reads_too("linear_cross_entropy_forward", dw);
    const LinearCrossEntropy call = checked(x, w, target, scale, gap, floor, rows, precision);
    float *loss_n = pointer(loss, "loss", call.N), *peak_n = pointer(peak, "peak", call.N);
    float *total_n = pointer(total, "total", call.N), *dx_nc = pointer_or_null(dx, "dx", call.N * call.C);
    float* dw_vc = pointer_or_null(dw, "dw", call.V * call.C);
    const float* slope_n = pointer_or_null(slope, "slope", call.N);

    WithoutGil release;
    call.forward(loss_n, peak_n, total_n, dx_nc, dw_vc, adds, slope_n);
}

void backward(std::optional<Matrix> dx, std::optional<Matrix> dw, bool adds, ConstMatrix x, ConstMatrix w, ConstVector peak,
              ConstVector total, Ids target, ConstVector slope, float gap, float floor, size_t rows, int precision) {
    if (adds) reads_too("linear_cross_entropy_backward", dw);
    const LinearCrossEntropy call = checked(x, w, target, slope, gap, floor, rows, precision);
    float *dx_nc = pointer_or_null(dx, "dx", call.N * call.C), *dw_vc = pointer_or_null(dw, "dw", call.V * call.C);
    const float *peak_n = pointer(peak, "peak", call.N), *total_n = pointer(total, "total", call.N);

    WithoutGil release;
    call.backward(dx_nc, dw_vc, adds, peak_n, total_n, call.scale_n);
}

}  // namespace

void bind_linear_cross_entropy(nb::module_& m) {
    const char* name = "linear_cross_entropy_forward";
    m.def(name, recordable(name, forward), "loss"_a.noconvert(), "peak"_a.noconvert(), "total"_a.noconvert(),
          "x"_a.noconvert(), "w"_a.noconvert(), "target"_a.noconvert(), "scale"_a.noconvert(), "gap"_a, "floor"_a,
          "rows"_a, "precision"_a, "dx"_a.noconvert().none() = nb::none(), "dw"_a.noconvert().none() = nb::none(),
          "adds"_a = true, "slope"_a.noconvert().none() = nb::none());
    def(m, "linear_cross_entropy_backward", backward, "dx", "dw", "adds", "x", "w", "peak", "total", "target", "slope", "gap",
        "floor", "rows", "precision");
}

}  // namespace chainrule
