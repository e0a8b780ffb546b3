#include <cmath>

#include "bind/arrays.hpp"
#include "ops/cross_entropy.hpp"
#include "gemm/gemm.hpp"
#include "bind/ids.hpp"
#include "runtime/memory.hpp"

namespace chainrule {
namespace {

// One chunk of rows at a time, with its logits in columns: z_vr = W xᵀ. Then W is read where it is in the first product,
// and dz in the last, rather than packed: both are far larger than x.
struct Chunks {
    const float *x_nc, *w_vc, *scale_n;
    const int64_t* target_n;
    float gap, floor;
    size_t N, V, C, rows;
    Precision precision;

    static constexpr size_t BLOCK = 128;  // classes: part of the result, since sums are made per block first
    size_t blocks() const { return (V + BLOCK - 1) / BLOCK; }

    template <class Body>  // body(first row, rows)
    void each(Body&& body) const {
        for (size_t n = 0; n < N; n += rows) body(n, std::min(rows, N - n));
    }

    void logits(float* z_vr, size_t n, size_t R) const {
        gemm(z_vr, R, {w_vc, C, 1}, {x_nc + n * C, 1, C}, nullptr, false, V, R, C, precision);
    }

    void losses(float* loss_n, float* peak_n, float* total_n, const float* z_vr, size_t n, size_t R) const {
        const size_t B = blocks();
        const Scratch partial(3 * B * R);
        float *peak_br = partial.data(), *total_br = peak_br + B * R, *sum_br = total_br + B * R;
        for_row_blocks(V, R, BLOCK, [&](size_t b, size_t v, size_t count) {
            cross_entropy_columns().reduce(peak_br + b * R, total_br + b * R, floor ? sum_br + b * R : nullptr,
                                           z_vr + v * R, count, R);
        });
        cross_entropy_columns().merge(peak_n + n, total_n + n, peak_br, total_br, B, R);
        for (size_t r = 0; r < R; ++r) {
            const float peak = peak_n[n + r];
            float loss = std::log(total_n[n + r]) - gap * (z_vr[target_n[n + r] * R + r] - peak);
            if (floor != 0) {
                double sum = 0;
                for (size_t b = 0; b < B; ++b) sum += sum_br[b * R + r];
                loss -= float(floor * (sum - double(V) * peak));
            }
            loss_n[n + r] = scale_n[n + r] == 0 ? 0 : loss * scale_n[n + r];
        }
    }

    // z becomes dz; dw is added to.
    void gradients(float* dx_nc, float* dw_vc, float* z_vr, const float* peak_n, const float* total_n,
                   const float* slope_n, size_t n, size_t R) const {
        for_row_blocks(V, R, BLOCK, [&](size_t, size_t v, size_t count) {
            cross_entropy_columns().gradients(z_vr + v * R, peak_n + n, total_n + n, slope_n + n, floor, count, R);
        });
        for (size_t r = 0; r < R; ++r) z_vr[target_n[n + r] * R + r] -= gap * slope_n[n + r];
        if (dx_nc) gemm(dx_nc + n * C, C, {z_vr, 1, R}, {w_vc, C, 1}, nullptr, false, R, C, V, precision);
        if (dw_vc) gemm(dw_vc, C, {z_vr, R, 1}, {x_nc + n * C, C, 1}, nullptr, true, V, C, R, precision);
    }
};

Chunks chunks(ConstMatrix x, ConstMatrix w, Ids target, ConstVector scale, float gap, float floor, size_t rows,
              int factors) {
    const size_t N = x.shape(0), C = x.shape(1), V = w.shape(0);
    if (rows == 0) throw std::invalid_argument("chunk is 0");
    return {x.data(), pointer(w, "w", V * C), pointer(scale, "scale", N), id_pointer(target, "target", N, V), gap, floor,
            N,        V,                      C,                          rows, as_precision(factors)};
}

// With `slope`, the scales times the gradient that the loss will get, the gradients are made too; dw is added to.
void forward(Vector loss, Vector peak, Vector total, ConstMatrix x, ConstMatrix w, Ids target, ConstVector scale,
             float gap, float floor, size_t rows, int factors, std::optional<Matrix> dx, std::optional<Matrix> dw,
             std::optional<ConstVector> slope) {
    const Chunks all = chunks(x, w, target, scale, gap, floor, rows, factors);
    float *loss_n = pointer(loss, "loss", all.N), *peak_n = pointer(peak, "peak", all.N);
    float *total_n = pointer(total, "total", all.N), *dx_nc = pointer_or_null(dx, "dx", all.N * all.C);
    float* dw_vc = pointer_or_null(dw, "dw", all.V * all.C);
    const float* slope_n = pointer_or_null(slope, "slope", all.N);

    WithoutGil release;
    const Scratch z_vr(std::min(rows, all.N) * all.V);
    all.each([&](size_t n, size_t R) {
        all.logits(z_vr.data(), n, R);
        all.losses(loss_n, peak_n, total_n, z_vr.data(), n, R);
        if (slope_n) all.gradients(dx_nc, dw_vc, z_vr.data(), peak_n, total_n, slope_n, n, R);
    });
}

// dw is added to.
void backward(std::optional<Matrix> dx, std::optional<Matrix> dw, ConstMatrix x, ConstMatrix w, ConstVector peak,
              ConstVector total, Ids target, ConstVector slope, float gap, float floor, size_t rows, int factors) {
    const Chunks all = chunks(x, w, target, slope, gap, floor, rows, factors);
    float *dx_nc = pointer_or_null(dx, "dx", all.N * all.C), *dw_vc = pointer_or_null(dw, "dw", all.V * all.C);
    const float *peak_n = pointer(peak, "peak", all.N), *total_n = pointer(total, "total", all.N);

    WithoutGil release;
    const Scratch z_vr(std::min(rows, all.N) * all.V);
    all.each([&](size_t n, size_t R) {
        all.logits(z_vr.data(), n, R);
        all.gradients(dx_nc, dw_vc, z_vr.data(), peak_n, total_n, all.scale_n, n, R);
    });
}

}  // namespace

void bind_linear_cross_entropy(nb::module_& m) {
    m.def("linear_cross_entropy_forward", &forward, "loss"_a.noconvert(), "peak"_a.noconvert(), "total"_a.noconvert(),
          "x"_a.noconvert(), "w"_a.noconvert(), "target"_a.noconvert(), "scale"_a.noconvert(), "gap"_a, "floor"_a,
          "rows"_a, "precision"_a, "dx"_a.noconvert().none() = nb::none(), "dw"_a.noconvert().none() = nb::none(),
          "slope"_a.noconvert().none() = nb::none());
    m.def("linear_cross_entropy_backward", &backward, "dx"_a.noconvert().none(), "dw"_a.noconvert().none(),
          "x"_a.noconvert(), "w"_a.noconvert(), "peak"_a.noconvert(), "total"_a.noconvert(), "target"_a.noconvert(),
          "slope"_a.noconvert(), "gap"_a, "floor"_a, "rows"_a, "precision"_a);
}

}  // namespace chainrule
