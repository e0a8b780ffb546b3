#include "ops/pooling.hpp"

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

using Mask = Array<const bool, 2>;

// Each text has a token; if the last one is wanted, padding stands behind them only.
const uint8_t* mask_pointer(const Mask& mask, bool last) {
    const auto* mask_bt = reinterpret_cast<const uint8_t*>(mask.data());
    for (size_t b = 0, T = mask.shape(1); b < mask.shape(0); ++b) {
        const uint8_t* mask_t = mask_bt + b * T;
        const size_t count = std::count(mask_t, mask_t + T, 1);
        if (count == 0) throw std::invalid_argument("mask has no token in row " + std::to_string(b));
        if (last && std::find(mask_t, mask_t + T, 0) - mask_t != static_cast<ptrdiff_t>(count))
            throw std::invalid_argument("mask has padding before a token in row " + std::to_string(b));
    }
    return mask_bt;
}

void forward(Matrix y, Array<const float, 3> x, Mask mask, bool last) {
    const size_t B = mask.shape(0), T = mask.shape(1), C = x.shape(2);
    float* y_bc = pointer(y, "y", B * C);
    const float* x_btc = pointer(x, "x", B * T * C);
    const uint8_t* mask_bt = mask_pointer(mask, last);

    WithoutGil release;
    for_row_blocks(B, T * C, 1, [&](size_t b, size_t, size_t) {
        pooling().forward(y_bc + b * C, x_btc + b * T * C, mask_bt + b * T, last, T, C);
    });
}

void backward(Array<float, 3> dx, ConstMatrix dy, Mask mask, bool last) {
    const size_t B = mask.shape(0), T = mask.shape(1), C = dx.shape(2);
    float* dx_btc = pointer(dx, "dx", B * T * C);
    const float* dy_bc = pointer(dy, "dy", B * C);
    const uint8_t* mask_bt = mask_pointer(mask, last);

    WithoutGil release;
    for_row_blocks(B, T * C, 1, [&](size_t b, size_t, size_t) {
        pooling().backward(dx_btc + b * T * C, dy_bc + b * C, mask_bt + b * T, last, T, C);
    });
}

void max_forward(Matrix y, Array<const float, 3> x, Mask mask) {
    const size_t B = mask.shape(0), T = mask.shape(1), C = x.shape(2);
    float* y_bc = pointer(y, "y", B * C);
    const float* x_btc = pointer(x, "x", B * T * C);
    const uint8_t* mask_bt = mask_pointer(mask, false);

    WithoutGil release;
    for_row_blocks(B, T * C, 1, [&](size_t b, size_t, size_t) {
        pooling().max_forward(y_bc + b * C, x_btc + b * T * C, mask_bt + b * T, T, C);
    });
}

void max_backward(Array<float, 3> dx, ConstMatrix dy, Array<const float, 3> x, ConstMatrix y, Mask mask) {
    const size_t B = mask.shape(0), T = mask.shape(1), C = dx.shape(2);
    float* dx_btc = pointer(dx, "dx", B * T * C);
    const float *dy_bc = pointer(dy, "dy", B * C), *x_btc = pointer(x, "x", B * T * C), *y_bc = pointer(y, "y", B * C);
    const uint8_t* mask_bt = mask_pointer(mask, false);

    WithoutGil release;
    for_row_blocks(B, T * C, 1, [&](size_t b, size_t, size_t) {
        pooling().max_backward(dx_btc + b * T * C, dy_bc + b * C, x_btc + b * T * C, y_bc + b * C, mask_bt + b * T, T, C);
    });
}

}  // namespace

void bind_pooling(nb::module_& m) {
    def(m, "pool_forward", forward, "y", "x", "mask", "last");
    def(m, "pool_backward", backward, "dx", "dy", "mask", "last");
    def(m, "pool_max_forward", max_forward, "y", "x", "mask");
    def(m, "pool_max_backward", max_backward, "dx", "dy", "x", "y", "mask");
}

}  // namespace chainrule
