#include "ops/batchnorm.hpp"

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

void forward(Flat<float> y, Vector mean, Vector var, Vector rstd, Flat<const float> x, ConstVector gamma,
             ConstVector beta, float eps) {
    const auto [R, C] = Rows(x);
    float *y_rc = pointer(y, "y", R * C), *mean_c = pointer(mean, "mean", C), *var_c = pointer(var, "var", C);
    float* rstd_c = pointer(rstd, "rstd", C);
    const float *gamma_c = pointer(gamma, "gamma", C), *beta_c = pointer(beta, "beta", C), *x_rc = x.data();

    WithoutGil release;
    batchnorm_forward(y_rc, mean_c, var_c, rstd_c, x_rc, gamma_c, beta_c, eps, R, C);
}

// dgamma_dbeta (2, C): one pass computes both.
void backward(std::optional<Flat<float>> dx, Matrix dgamma_dbeta, Flat<const float> x, ConstVector gamma,
              ConstVector mean, ConstVector rstd, Flat<const float> dy, ConstVector dmean, ConstVector dvar) {
    const auto [R, C] = Rows(x);
    float *dx_rc = pointer_or_null(dx, "dx", R * C), *dgamma_dbeta_2c = pointer(dgamma_dbeta, "dgamma_dbeta", 2 * C);
    const float *gamma_c = pointer(gamma, "gamma", C), *mean_c = pointer(mean, "mean", C);
    const float *rstd_c = pointer(rstd, "rstd", C), *dy_rc = pointer(dy, "dy", R * C), *x_rc = x.data();
    const float *dmean_c = pointer(dmean, "dmean", C), *dvar_c = pointer(dvar, "dvar", C);

    WithoutGil release;
    batchnorm_backward(dx_rc, dgamma_dbeta_2c, x_rc, gamma_c, mean_c, rstd_c, dy_rc, dmean_c, dvar_c, R, C);
}

}  // namespace

void bind_batchnorm(nb::module_& m) {
    def(m, "batchnorm_forward", forward, "y", "mean", "var", "rstd", "x", "gamma", "beta", "eps");
    def(m, "batchnorm_backward", backward, "dx", "dgamma_dbeta", "x", "gamma", "mean", "rstd", "dy", "dmean", "dvar");
}

}  // namespace chainrule
