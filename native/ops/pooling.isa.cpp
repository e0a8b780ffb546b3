// One row for a text.        Derivation: docs/derivations/pooling.md
#include "ops/pooling.hpp"

#include "simd/map.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

struct Tokens {
    size_t count = 0, last = 0;
    Tokens(const uint8_t* mask_t, size_t T) {
        for (size_t t = 0; t < T; ++t)
            if (mask_t[t]) ++count, last = t;
    }
};

void forward(float* y_c, const float* x_tc, const uint8_t* mask_t, bool last, size_t T, size_t C) {
    const Tokens tokens(mask_t, T);
    if (last) {
        __builtin_memcpy(y_c, x_tc + tokens.last * C, C * sizeof(float));
        return;
    }
    const Vec count = fill(static_cast<float>(tokens.count));
    each_vector(C, [=](size_t c, auto left) {
        Vec total = fill(0);
        for (size_t t = 0; t < T; ++t)
            if (mask_t[t]) total = total + load_next(x_tc + t * C + c, left);
        store_next(y_c + c, total / count, left);  // [PL.1]
    });
}

void backward(float* dx_tc, const float* dy_c, const uint8_t* mask_t, bool last, size_t T, size_t C) {
    const Tokens tokens(mask_t, T);
    const Vec count = fill(last ? 1.0f : static_cast<float>(tokens.count));
    for (size_t t = 0; t < T; ++t) {  // forward was: y = Σ_t m_t x_t / Σ m, or the last x_t                   [PL.2]
        const bool counts = last ? t == tokens.last : mask_t[t];
        each_vector(C, [=](size_t c, auto left) {
            store_next(dx_tc + t * C + c, counts ? load_next(dy_c + c, left) / count : fill(0), left);
        });
    }
}

void max_forward(float* y_c, const float* x_tc, const uint8_t* mask_t, size_t T, size_t C) {
    bool any = false;
    for (size_t t = 0; t < T; ++t) {
        if (!mask_t[t]) continue;
        for (size_t c = 0; c < C; ++c) {
            const float x = x_tc[t * C + c], y = y_c[c];
            y_c[c] = !any || x > y || x != x ? x : y;  // what is not a number stays                              [PL.3]
        }
        any = true;
    }
}

void max_backward(float* dx_tc, const float* dy_c, const float* x_tc, const float* y_c, const uint8_t* mask_t, size_t T,
                  size_t C) {
    each_vector(C, [=](size_t c, auto left) {  // forward was: y = max x_t                                        [PL.4]
        const Vec y = load_next(y_c + c, left);
        Vec count = fill(0);
        for (size_t t = 0; t < T; ++t)
            if (mask_t[t]) count = count + select(load_next(x_tc + t * C + c, left) == y, fill(1), fill(0));
        const Vec share = load_next(dy_c + c, left) / count;  // of a column without a maximum not a number, as it is
        for (size_t t = 0; t < T; ++t) {
            const Vec largest = select(load_next(x_tc + t * C + c, left) == y, share, select(y == y, fill(0), y));
            store_next(dx_tc + t * C + c, mask_t[t] ? largest : fill(0), left);
        }
    });
}

}  // namespace

const Pooling pooling = {forward, backward, max_forward, max_backward};

}  // namespace chainrule::CHAINRULE_ISA
