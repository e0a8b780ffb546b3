// Inverted dropout.        Derivation: docs/derivations/dropout.md
#include "dropout.hpp"

#include "vec.hpp"

namespace chainrule::CHAINRULE_LEVEL {
namespace {

void forward(float* y_n, uint8_t* keep_n, const float* x_n, const KeepMask& mask, float scale, size_t first, size_t n) {
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES) {
        const Int keep = kept(mask, first + i);
        store_bools(keep_n + i, keep);
        store(y_n + i, load(x_n + i) * select(keep, fill(scale), fill(0)));
    }
    if (whole < n) {
        const Int keep = kept(mask, first + whole);
        uint8_t lane[LANES];
        store_bools(lane, keep);
        for (size_t i = whole; i < n; ++i) keep_n[i] = lane[i - whole];
        store_some(y_n + whole, load_some(x_n + whole, n - whole) * select(keep, fill(scale), fill(0)), n - whole);
    }
}

void backward(float* dx_n, const uint8_t* keep_n, const float* dy_n, float scale, size_t n) {
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)
        store(dx_n + i, load(dy_n + i) * (to_float(load_bools(keep_n + i)) * fill(scale)));
    for (size_t i = whole; i < n; ++i) dx_n[i] = dy_n[i] * (keep_n[i] * scale);
}

}  // namespace

const Dropout dropout = {forward, backward};

}  // namespace chainrule::CHAINRULE_LEVEL
