// Batch normalization over the rows.        Derivation: docs/derivations/batchnorm.md
#include "ops/batchnorm.hpp"

#include <algorithm>

#include "gemm/gemm.hpp"
#include "ops/rstd.hpp"
#include "runtime/row_sums.hpp"

namespace chainrule {
namespace {

void variance(float* var_c, const float* x_rc, const float* mean_c, size_t R, size_t C) {
    std::fill_n(var_c, C, 0.0f);
    add_row_sums({var_c}, C, R, C, [&](float* total_c, size_t r, size_t rows) {
        batchnorm().squares(total_c, x_rc + r * C, mean_c, rows, C);
    });
    for (size_t c = 0; c < C; ++c) var_c[c] /= R;
}

// The means that are far, plus what is left of them in the centered values; y is scratch.
void refine(float* mean_c, float* var_c, float* y_rc, const float* x_rc, size_t R, size_t C) {
    bool any = false;
    for (size_t c = 0; c < C; ++c) any |= mean_is_far(mean_c[c], var_c[c]);
    if (!any) return;
    const Scratch constants(3 * C);
    float *one_c = constants.data(), *zero_c = one_c + C, *rest_c = zero_c + C;
    std::fill_n(one_c, C, 1.0f);
    std::fill_n(zero_c, 2 * C, 0.0f);
    for_rows(R, C, [&](size_t r, size_t rows) {
        batchnorm().normalize(y_rc + r * C, x_rc + r * C, mean_c, one_c, zero_c, rows, C);
    });
    add_row_sums({rest_c}, C, R, C, [&](float* total_c, size_t r, size_t rows) {
        gemm_kernels().column_sums(total_c, y_rc + r * C, C, rows, C);
    });
    for (size_t c = 0; c < C; ++c)
        if (mean_is_far(mean_c[c], var_c[c])) mean_c[c] += rest_c[c] / R;  // [BN.10]
    variance(var_c, x_rc, mean_c, R, C);
}

}  // namespace

void batchnorm_forward(float* y_rc, float* mean_c, float* var_c, float* rstd_c, const float* x_rc, const float* gamma_c,
                       const float* beta_c, float eps, size_t R, size_t C) {
    std::fill_n(mean_c, C, 0.0f);
    add_row_sums({mean_c}, C, R, C, [&](float* total_c, size_t r, size_t rows) {
        gemm_kernels().column_sums(total_c, x_rc + r * C, C, rows, C);
    });
    for (size_t c = 0; c < C; ++c) mean_c[c] /= R;
    variance(var_c, x_rc, mean_c, R, C);
    refine(mean_c, var_c, y_rc, x_rc, R, C);
    const Scratch scale(C);
    float* scale_c = scale.data();
    for (size_t c = 0; c < C; ++c) {
        rstd_c[c] = rstd_of(var_c[c], eps);  // [BN.1]
        scale_c[c] = rstd_c[c] * gamma_c[c];
    }
    for_rows(R, C, [&](size_t r, size_t rows) {  // [BN.2]
        batchnorm().normalize(y_rc + r * C, x_rc + r * C, mean_c, scale_c, beta_c, rows, C);
    });
}

void batchnorm_backward(float* dx_rc, float* dgamma_dbeta_2c, const float* x_rc, const float* gamma_c,
                        const float* mean_c, const float* rstd_c, const float* dy_rc, const float* dmean_c,
                        const float* dvar_c, size_t R, size_t C) {
    float *dgamma_c = dgamma_dbeta_2c, *dbeta_c = dgamma_dbeta_2c + C;
    std::fill_n(dgamma_dbeta_2c, 2 * C, 0.0f);
    add_row_sums({dgamma_c, dbeta_c}, C, R, C, [&](float* total_2c, size_t r, size_t rows) {
        batchnorm().gradient_sums(total_2c, total_2c + C, x_rc + r * C, mean_c, rstd_c, dy_rc + r * C, rows, C);
    });
    if (!dx_rc) return;
    const Scratch factors(3 * C);
    float *scale_c = factors.data(), *through_mean_c = scale_c + C, *through_var_c = through_mean_c + C;
    for (size_t c = 0; c < C; ++c) {  // forward was: y = (x - mean) rstd gamma + beta
        scale_c[c] = gamma_c[c] * rstd_c[c];
        through_mean_c[c] = (scale_c[c] * dbeta_c[c] - dmean_c[c]) / R;                         // [BN.5]
        through_var_c[c] = (scale_c[c] * dgamma_c[c] * rstd_c[c] - 2 * dvar_c[c]) / R;  // [BN.6]
    }
    for_rows(R, C, [&](size_t r, size_t rows) {
        batchnorm().input_gradient(dx_rc + r * C, x_rc + r * C, mean_c, dy_rc + r * C, scale_c, through_mean_c,
                                   through_var_c, rows, C);
    });
}

}  // namespace chainrule
