#pragma once

#include "runtime/isa.hpp"

namespace chainrule {

// One step over n parameters w with gradients g, each of which counts `scale` times. The operations and their order are
// those of optim/*.py, and so are the bits.
struct Optimizers {
    // w -= lr (decay w + g)
    void (*sgd)(float* w_n, const float* g_n, float scale, float decay, float lr, size_t n);

    // move = inside (decay w + g); v = momentum v + move; w -= outside v, with nesterov outside (momentum v + move)
    void (*momentum)(float* w_n, float* v_n, const float* g_n, float scale, float decay, float momentum, float inside,
                     float outside, bool nesterov, size_t n);

    // v = keep v + add g²; w -= lr g / (√(v + eps_inside) + eps_outside): AdaGrad and RMSprop
    void (*rms)(float* w_n, float* v_n, const float* g_n, float scale, float keep, float add, float eps_inside,
                float eps_outside, float lr, size_t n);

    // m = keep_m m + add_m g; v = keep_v v + add_v g²; w = shrink w - lr m / (√(v / bias + eps_inside) + eps_outside)
    void (*adam)(float* w_n, float* m_n, float* v_n, const float* g_n, float scale, float keep_m, float add_m,
                 float keep_v, float add_v, float bias, float eps_inside, float eps_outside, float lr, float shrink, size_t n);

    // w = shrink w - lr sign(keep_move m + add_move g); m = keep_m m + add_m g
    void (*lion)(float* w_n, float* m_n, const float* g_n, float scale, float keep_move, float add_move, float keep_m,
                 float add_m, float lr, float shrink, size_t n);

    double (*sum_of_squares)(const float* x_n, size_t n);
    void (*scale)(float* x_n, float factor, size_t n);
};
CHAINRULE_KERNELS(Optimizers, optimizers)

}  // namespace chainrule
