#include "ops/batchnorm.hpp"

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

using Count = std::optional<Array<const int64_t, 1>>;

// How many rows are the batch, if not all are; the others follow them.
size_t counted(const Count& rows, size_t R) {
    if (!rows) return R;
    const int64_t count = *pointer(*rows, "rows", 1);
    if (count < 1 || static_cast<size_t>(count) > R)
        throw std::invalid_argument("rows is " + std::to_string(count) + ", must be from 1 to " + std::to_string(R));
    return static_cast<size_t>(count);
}

void forward(Flat<float> y, Vector mean, Vector var, Vector rstd, Flat<const float> x, ConstVector gamma,
             ConstVector beta, float eps, Count rows) {
    const auto [R, C] = Rows(x);
    const size_t N = counted(rows, R);
    float *y_rc = pointer(y, "y", R * C), *mean_c = pointer(mean, "mean", C), *var_c = pointer(var, "var", C);
    float* rstd_c = pointer(rstd, "rstd", C);
    const float *gamma_c = pointer(gamma, "gamma", C), *beta_c = pointer(beta, "beta", C), *x_rc = x.data();

    WithoutGil release;
    batchnorm_forward(y_rc, mean_c, var_c, rstd_c, x_rc, gamma_c, beta_c, eps, N, C);
    std::fill(y_rc + N * C, y_rc + R * C, 0.0f);
}

// dgamma_dbeta (2, C): one pass computes both.
void backward(std::optional<Flat<float>> dx, Matrix dgamma_dbeta, Flat<const float> x, ConstVector gamma,
              ConstVector mean, ConstVector rstd, Flat<const float> dy, ConstVector dmean, ConstVector dvar,
              Count rows) {
    const auto [R, C] = Rows(x);
    const size_t N = counted(rows, R);
    float *dx_rc = pointer_or_null(dx, "dx", R * C), *dgamma_dbeta_2c = pointer(dgamma_dbeta, "dgamma_dbeta", 2 * C);
    const float *gamma_c = pointer(gamma, "gamma", C), *mean_c = pointer(mean, "mean", C);
    const float *rstd_c = pointer(rstd, "rstd", C), *dy_rc = pointer(dy, "dy", R * C), *x_rc = x.data();
    const float *dmean_c = pointer(dmean, "dmean", C), *dvar_c = pointer(dvar, "dvar", C);

    WithoutGil release;
    batchnorm_backward(dx_rc, dgamma_dbeta_2c, x_rc, gamma_c, mean_c, rstd_c, dy_rc, dmean_c, dvar_c, N, C);
    if (dx_rc) std::fill(dx_rc + N * C, dx_rc + R * C, 0.0f);
}

void update_running(Vector running, ConstVector seen, float keep, float add) {
    const size_t C = running.size();
    reads_too("update_running", running);
    const float* seen_c = pointer(seen, "seen", C);
    float* running_c = running.data();

    WithoutGil release;
    batchnorm().update_running(running_c, seen_c, keep, add, C);
}

}  // namespace

void bind_batchnorm(nb::module_& m) {
    def(m, "batchnorm_forward", forward, "y", "mean", "var", "rstd", "x", "gamma", "beta", "eps", "rows");
    def(m, "batchnorm_backward", backward, "dx", "dgamma_dbeta", "x", "gamma", "mean", "rstd", "dy", "dmean", "dvar",
        "rows");
    def(m, "update_running", update_running, "running", "seen", "keep", "add");
}

}  // namespace chainrule
