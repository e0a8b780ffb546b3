// Root-mean-square normalization over the last axis.        Derivation: docs/derivations/rmsnorm.md
#include "ops/rmsnorm.hpp"

#include "ops/rstd.hpp"
#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

void forward(float* y_rc, float* rstd_r, const float* x_rc, const float* gamma_c, float eps, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float* x = x_rc + r * C;
        Vec squares = fill(0);
        for (size_t c = 0; c < C; c += LANES) {
            const Vec v = load_next(x + c, C - c);
            squares = fma(v, v, squares);
        }
        const float rstd = rstd_of(sum(squares) / C, eps);  // [RN.1]
        for (size_t c = 0; c < C; c += LANES) {
            const Vec xhat = load_next(x + c, C - c) * fill(rstd);
            store_next(y_rc + r * C + c, xhat * load_next(gamma_c + c, C - c), C - c);
        }
        rstd_r[r] = rstd;
    }
}

void backward(float* dx_rc, float* dgamma_c, const float* x_rc, const float* gamma_c, const float* rstd_r,
              const float* dy_rc, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float *x = x_rc + r * C, *dy = dy_rc + r * C;
        const Vec rstd = fill(rstd_r[r]);

        Vec sum_product = fill(0);
        for (size_t c = 0; c < C; c += LANES) {
            const size_t left = C - c;
            const Vec g = load_next(dy + c, left);
            const Vec xhat = load_next(x + c, left) * rstd;
            sum_product = fma(g * load_next(gamma_c + c, left), xhat, sum_product);
            if (dgamma_c) store_next(dgamma_c + c, fma(g, xhat, load_next(dgamma_c + c, left)), left);  // [RN.2]
        }
        if (!dx_rc) continue;

        // forward was: y = xhat gamma, xhat = x rstd                                                             [RN.3]
        const Vec minus_mean_product = fill(-sum(sum_product) / C);
        for (size_t c = 0; c < C; c += LANES) {
            const size_t left = C - c;
            const Vec dxhat = load_next(dy + c, left) * load_next(gamma_c + c, left);
            const Vec xhat = load_next(x + c, left) * rstd;
            store_next(dx_rc + r * C + c, rstd * fma(xhat, minus_mean_product, dxhat), left);
        }
    }
}

}  // namespace

const Rmsnorm rmsnorm = {forward, backward};

}  // namespace chainrule::CHAINRULE_ISA
