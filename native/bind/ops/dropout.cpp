#include "ops/dropout.hpp"

#include "bind/kernels.hpp"

namespace chainrule {
namespace {

void forward(Flat<float> y, Flat<bool> keep, Flat<const float> x, const Key& key,
             uint32_t threshold, float scale) {
    float* y_n = pointer(y, "y", x.size());
    auto* keep_n = reinterpret_cast<uint8_t*>(pointer(keep, "keep", x.size()));
    const float* x_n = x.data();
    const KeepMask mask = {{key[0], key[1], key[2], key[3], key[4]}, threshold};

    WithoutGil release;
    for_elements(x.size(), [&](size_t i, size_t n) {
        dropout().forward(y_n + i, keep_n + i, x_n + i, mask, scale, i, n);
    });
}

}  // namespace

void bind_dropout(nb::module_& m) {
    def(m, "dropout_forward", forward, "y", "keep", "x", "key", "threshold", "scale");
    bind_elements(m, "dropout_backward", dropout, &Dropout::backward, "dx", "keep", "dy", "scale");
}

}  // namespace chainrule
