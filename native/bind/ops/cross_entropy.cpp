#include "ops/cross_entropy.hpp"

#include "bind/ids.hpp"

namespace chainrule {
namespace {

void forward(Vector loss, Vector peak, Vector total, ConstMatrix x, Ids target, ConstVector scale, float gap,
             float floor) {
    const size_t R = x.shape(0), V = x.shape(1);
    float *loss_r = pointer(loss, "loss", R), *peak_r = pointer(peak, "peak", R), *total_r = pointer(total, "total", R);
    const int64_t* target_r = id_pointer(target, "target", R, V);
    const float *scale_r = pointer(scale, "scale", R), *x_rv = x.data();

    WithoutGil release;
    for_row_blocks(R, V, rows_per_block(V), [&](size_t, size_t r, size_t rows) {
        cross_entropy().forward(loss_r + r, peak_r + r, total_r + r, x_rv + r * V, target_r + r, scale_r + r, gap,
                                floor, rows, V);
    });
}

void backward(Matrix dx, ConstMatrix x, ConstVector peak, ConstVector total, Ids target, ConstVector scale,
              float gap, float floor) {
    const size_t R = x.shape(0), V = x.shape(1);
    float* dx_rv = pointer(dx, "dx", R * V);
    const float *peak_r = pointer(peak, "peak", R), *total_r = pointer(total, "total", R);
    const int64_t* target_r = id_pointer(target, "target", R, V);
    const float *scale_r = pointer(scale, "scale", R), *x_rv = x.data();

    WithoutGil release;
    for_row_blocks(R, V, rows_per_block(V), [&](size_t, size_t r, size_t rows) {
        cross_entropy().backward(dx_rv + r * V, peak_r + r, total_r + r, x_rv + r * V, target_r + r, scale_r + r, gap,
                                 floor, rows, V);
    });
}

}  // namespace

void bind_cross_entropy(nb::module_& m) {
    def(m, "cross_entropy_forward", forward, "loss", "peak", "total", "x", "target", "scale", "gap", "floor");
    def(m, "cross_entropy_backward", backward, "dx", "x", "peak", "total", "target", "scale", "gap", "floor");
}

}  // namespace chainrule
