#include "arrays.hpp"
#include "cross_entropy.hpp"
#include "gemm.hpp"
#include "ids.hpp"
#include "memory.hpp"

namespace chainrule {
namespace {

// z = x Wᵀ
void logits(float* z_rv, const float* x_rc, const float* w_vc, size_t R, size_t V, size_t C, Precision precision) {
    gemm(z_rv, V, {x_rc, C, 1}, {w_vc, 1, C}, nullptr, false, R, V, C, precision);
}

// All logits are kept in z if there is such an array; otherwise those of a chunk of rows at a time exist.
void forward(Vector loss, std::optional<Matrix> z, Vector peak, Vector total, ConstMatrix x, ConstMatrix w, Ids target,
             ConstVector scale, float gap, float floor, size_t chunk, int factors) {
    const size_t N = x.shape(0), C = x.shape(1), V = w.shape(0);
    float* loss_n = pointer(loss, "loss", N);
    float* z_nv = pointer_or_null(z, "z", N * V);
    float* peak_n = pointer(peak, "peak", N);
    float* total_n = pointer(total, "total", N);
    const float* w_vc = pointer(w, "w", V * C);
    const int64_t* target_n = id_pointer(target, "target", N, V);
    const float* scale_n = pointer(scale, "scale", N);
    const float* x_nc = x.data();
    if (chunk == 0) throw std::invalid_argument("chunk is 0");
    const Precision precision = as_precision(factors);

    WithoutGil release;
    const Scratch scratch(z_nv ? 0 : std::min(chunk, N) * V);
    for (size_t n = 0; n < N; n += chunk) {
        const size_t rows = std::min(chunk, N - n);
        float* z_rv = z_nv ? z_nv + n * V : scratch.data();
        logits(z_rv, x_nc + n * C, w_vc, rows, V, C, precision);
        cross_entropy_losses(loss_n + n, peak_n + n, total_n + n, z_rv, target_n + n, scale_n + n, gap, floor, rows, V);
    }
}

// dw is added to.
void backward(std::optional<Matrix> dx, std::optional<Matrix> dw, ConstMatrix x, ConstMatrix w,
              std::optional<ConstMatrix> z, ConstVector peak, ConstVector total, Ids target, ConstVector scale,
              float gap, float floor, size_t chunk, int factors) {
    const size_t N = x.shape(0), C = x.shape(1), V = w.shape(0);
    float* dx_nc = pointer_or_null(dx, "dx", N * C);
    float* dw_vc = pointer_or_null(dw, "dw", V * C);
    const float* w_vc = pointer(w, "w", V * C);
    const float* z_nv = pointer_or_null(z, "z", N * V);
    const float* peak_n = pointer(peak, "peak", N);
    const float* total_n = pointer(total, "total", N);
    const int64_t* target_n = id_pointer(target, "target", N, V);
    const float* scale_n = pointer(scale, "scale", N);
    const float* x_nc = x.data();
    if (chunk == 0) throw std::invalid_argument("chunk is 0");
    const Precision precision = as_precision(factors);

    WithoutGil release;
    const Scratch scratch(std::min(chunk, N) * V);
    float* dz_rv = scratch.data();
    for (size_t n = 0; n < N; n += chunk) {
        const size_t rows = std::min(chunk, N - n);
        if (!z_nv) logits(dz_rv, x_nc + n * C, w_vc, rows, V, C, precision);
        cross_entropy_gradients(dz_rv, peak_n + n, total_n + n, z_nv ? z_nv + n * V : dz_rv, target_n + n, scale_n + n,
                                gap, floor, rows, V);
        if (dx_nc) gemm(dx_nc + n * C, C, {dz_rv, V, 1}, {w_vc, C, 1}, nullptr, false, rows, C, V, precision);
        if (dw_vc) gemm(dw_vc, C, {dz_rv, 1, V}, {x_nc + n * C, C, 1}, nullptr, true, V, C, rows, precision);
    }
}

}  // namespace

void bind_linear_cross_entropy(nb::module_& m) {
    m.def("linear_cross_entropy_forward", &forward, "loss"_a.noconvert(), "z"_a.noconvert().none(),
          "peak"_a.noconvert(), "total"_a.noconvert(), "x"_a.noconvert(), "w"_a.noconvert(), "target"_a.noconvert(),
          "scale"_a.noconvert(), "gap"_a, "floor"_a, "chunk"_a, "precision"_a);
    m.def("linear_cross_entropy_backward", &backward, "dx"_a.noconvert().none(), "dw"_a.noconvert().none(),
          "x"_a.noconvert(), "w"_a.noconvert(), "z"_a.noconvert().none(), "peak"_a.noconvert(),
          "total"_a.noconvert(), "target"_a.noconvert(), "scale"_a.noconvert(), "gap"_a, "floor"_a, "chunk"_a, "precision"_a);
}

}  // namespace chainrule
