#include "ops/layernorm.hpp"

#include "bind/kernels.hpp"
#include "runtime/row_sums.hpp"

namespace chainrule {
namespace {

// dgamma and dbeta are added to.
void backward(std::optional<Flat<float>> dx, std::optional<Vector> dgamma, std::optional<Vector> dbeta,
              Flat<const float> x, ConstVector gamma, Flat<const float> mean, Flat<const float> rstd,
              Flat<const float> dy) {
    reads_too("layernorm_backward", dgamma);
    reads_too("layernorm_backward", dbeta);
    const auto [R, C] = Rows(x);
    float *dx_rc = pointer_or_null(dx, "dx", R * C), *dgamma_c = pointer_or_null(dgamma, "dgamma", C);
    float* dbeta_c = pointer_or_null(dbeta, "dbeta", C);
    if (!dgamma_c != !dbeta_c) throw std::invalid_argument("dgamma and dbeta come together or not at all");
    const float *gamma_c = pointer(gamma, "gamma", C), *mean_r = pointer(mean, "mean", R);
    const float *rstd_r = pointer(rstd, "rstd", R), *dy_rc = pointer(dy, "dy", R * C), *x_rc = x.data();

    WithoutGil release;
    add_row_sums({dgamma_c, dbeta_c}, C, R, C, [&, C = C](float* partial_2c, size_t r, size_t rows) {
        layernorm().backward(dx_rc ? dx_rc + r * C : nullptr, partial_2c, partial_2c ? partial_2c + C : nullptr,
                             x_rc + r * C, gamma_c, mean_r + r, rstd_r + r, dy_rc + r * C, rows, C);
    });
}

}  // namespace

void bind_layernorm(nb::module_& m) {
    bind_rows(m, "layernorm_forward", layernorm, &Layernorm::forward, "y", per_row("mean"), per_row("rstd"), "x",
              per_column("gamma"), per_column("beta"), "eps");
    def(m, "layernorm_backward", backward, "dx", "dgamma", "dbeta", "x", "gamma", "mean", "rstd", "dy");
}

}  // namespace chainrule
