// Batch normalization over the rows: the passes.        Derivation: docs/derivations/batchnorm.md
#include "ops/batchnorm.hpp"

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

void squares(float* total_c, const float* x_rc, const float* mean_c, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r)
        for (size_t c = 0; c < C; c += LANES) {
            const size_t left = C - c;
            const Vec d = load_next(x_rc + r * C + c, left) - load_next(mean_c + c, left);
            store_next(total_c + c, fma(d, d, load_next(total_c + c, left)), left);
        }
}

void gradient_sums(float* dgamma_c, float* dbeta_c, const float* x_rc, const float* mean_c, const float* rstd_c,
                   const float* dy_rc, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r)
        for (size_t c = 0; c < C; c += LANES) {
            const size_t left = C - c;
            const Vec g = load_next(dy_rc + r * C + c, left);
            const Vec centered = load_next(x_rc + r * C + c, left) - load_next(mean_c + c, left);
            const Vec xhat = centered * load_next(rstd_c + c, left);
            store_next(dgamma_c + c, fma(g, xhat, load_next(dgamma_c + c, left)), left);  // [BN.4]
            store_next(dbeta_c + c, load_next(dbeta_c + c, left) + g, left);              // [BN.3]
        }
}

void normalize(float* y_rc, const float* x_rc, const float* mean_c, const float* scale_c, const float* beta_c, size_t R,
               size_t C) {
    for (size_t r = 0; r < R; ++r)
        for (size_t c = 0; c < C; c += LANES) {
            const size_t left = C - c;
            const Vec centered = load_next(x_rc + r * C + c, left) - load_next(mean_c + c, left);
            const Vec y = fma(centered, load_next(scale_c + c, left), load_next(beta_c + c, left));
            store_next(y_rc + r * C + c, y, left);
        }
}

void input_gradient(float* dx_rc, const float* x_rc, const float* mean_c, const float* dy_rc, const float* scale_c,
                    const float* through_mean_c, const float* through_var_c, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r)
        for (size_t c = 0; c < C; c += LANES) {
            const size_t left = C - c;
            const Vec direct = load_next(dy_rc + r * C + c, left) * load_next(scale_c + c, left);
            const Vec centered = load_next(x_rc + r * C + c, left) - load_next(mean_c + c, left);
            const Vec through = fma(centered, load_next(through_var_c + c, left), load_next(through_mean_c + c, left));
            store_next(dx_rc + r * C + c, direct - through, left);
        }
}

void update_running(float* running_c, const float* seen_c, float keep, float add, size_t C) {
    for (size_t c = 0; c < C; c += LANES) {
        const size_t left = C - c;
        const Vec kept = load_next(running_c + c, left) * fill(keep);
        store_next(running_c + c, kept + load_next(seen_c + c, left) * fill(add), left);  // [BN.8]
    }
}

}  // namespace

const BatchnormKernels batchnorm = {squares, gradient_sums, normalize, input_gradient, update_running};

}  // namespace chainrule::CHAINRULE_ISA
