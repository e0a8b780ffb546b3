#include "ops/batchnorm.hpp"

#include <cmath>

#include "bind/arrays.hpp"
#include "runtime/row_sums.hpp"

namespace chainrule {
namespace {

void forward(Flat<float> y, Vector mean, Vector var, Vector rstd, Flat<const float> x, ConstVector gamma,
             ConstVector beta, float eps) {
    const Rows size(x);
    const size_t R = size.R, C = size.C;
    float* y_rc = pointer(y, "y", R * C);
    float* mean_c = pointer(mean, "mean", C);
    float* var_c = pointer(var, "var", C);
    float* rstd_c = pointer(rstd, "rstd", C);
    const float* gamma_c = pointer(gamma, "gamma", C);
    const float* beta_c = pointer(beta, "beta", C);
    const float* x_rc = x.data();

    WithoutGil release;
    std::fill_n(mean_c, C, 0.0f);
    add_row_sums({mean_c}, C, R, C, [&](float* total_c, size_t r, size_t rows) {
        batchnorm().sums(total_c, x_rc + r * C, rows, C);
    });
    for (size_t c = 0; c < C; ++c) mean_c[c] /= R;
    std::fill_n(var_c, C, 0.0f);
    add_row_sums({var_c}, C, R, C, [&](float* total_c, size_t r, size_t rows) {
        batchnorm().squares(total_c, x_rc + r * C, mean_c, rows, C);
    });
    const Scratch scale(C);
    float* scale_c = scale.data();
    for (size_t c = 0; c < C; ++c) {
        var_c[c] /= R;
        rstd_c[c] = 1 / std::sqrt(var_c[c] + eps);
        scale_c[c] = rstd_c[c] * gamma_c[c];
    }
    for_rows(R, C, [&](size_t r, size_t rows) {
        batchnorm().normalise(y_rc + r * C, x_rc + r * C, mean_c, scale_c, beta_c, rows, C);
    });
}

// dgamma_dbeta (2, C): both come from one pass.
void backward(std::optional<Flat<float>> dx, Matrix dgamma_dbeta, Flat<const float> x, ConstVector gamma,
              ConstVector mean, ConstVector rstd, Flat<const float> dy, ConstVector dmean, ConstVector dvar) {
    const Rows size(x);
    const size_t R = size.R, C = size.C;
    float* dx_rc = pointer_or_null(dx, "dx", R * C);
    float* dgamma_c = pointer(dgamma_dbeta, "dgamma_dbeta", 2 * C);
    const float* dbeta_c = dgamma_c + C;
    const float* gamma_c = pointer(gamma, "gamma", C);
    const float* mean_c = pointer(mean, "mean", C);
    const float* rstd_c = pointer(rstd, "rstd", C);
    const float* dy_rc = pointer(dy, "dy", R * C);
    const float* dmean_c = pointer(dmean, "dmean", C);
    const float* dvar_c = pointer(dvar, "dvar", C);
    const float* x_rc = x.data();

    WithoutGil release;
    std::fill_n(dgamma_c, 2 * C, 0.0f);
    add_row_sums({dgamma_c, dgamma_c + C}, C, R, C, [&](float* total_2c, size_t r, size_t rows) {
        batchnorm().gradient_sums(total_2c, total_2c + C, x_rc + r * C, mean_c, rstd_c, dy_rc + r * C, rows, C);
    });
    if (!dx_rc) return;
    const Scratch factors(3 * C);
    float *scale_c = factors.data(), *through_mean_c = scale_c + C, *through_var_c = through_mean_c + C;
    for (size_t c = 0; c < C; ++c) {
        scale_c[c] = gamma_c[c] * rstd_c[c];
        through_mean_c[c] = (scale_c[c] * dbeta_c[c] - dmean_c[c]) / R;
        through_var_c[c] = (scale_c[c] * dgamma_c[c] * rstd_c[c] - 2 * dvar_c[c]) / R;
    }
    for_rows(R, C, [&](size_t r, size_t rows) {
        batchnorm().input_gradient(dx_rc + r * C, x_rc + r * C, mean_c, dy_rc + r * C, scale_c, through_mean_c,
                                   through_var_c, rows, C);
    });
}

}  // namespace

void bind_batchnorm(nb::module_& m) {
    m.def("batchnorm_forward", &forward, "y"_a.noconvert(), "mean"_a.noconvert(), "var"_a.noconvert(),
          "rstd"_a.noconvert(), "x"_a.noconvert(), "gamma"_a.noconvert(), "beta"_a.noconvert(), "eps"_a);
    m.def("batchnorm_backward", &backward, "dx"_a.noconvert().none(), "dgamma_dbeta"_a.noconvert(), "x"_a.noconvert(),
          "gamma"_a.noconvert(), "mean"_a.noconvert(), "rstd"_a.noconvert(), "dy"_a.noconvert(),
          "dmean"_a.noconvert(), "dvar"_a.noconvert());
}

}  // namespace chainrule
