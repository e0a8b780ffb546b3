#include "ops/rmsnorm.hpp"

#include "bind/kernels.hpp"
#include "runtime/row_sums.hpp"

namespace chainrule {
namespace {

// dgamma is added to.
void backward(std::optional<Flat<float>> dx, std::optional<Vector> dgamma, Flat<const float> x, ConstVector gamma,
              Flat<const float> rstd, Flat<const float> dy) {
    reads_too("rmsnorm_backward", dgamma);
    const auto [R, C] = Rows(x);
    float *dx_rc = pointer_or_null(dx, "dx", R * C), *dgamma_c = pointer_or_null(dgamma, "dgamma", C);
    const float *gamma_c = pointer(gamma, "gamma", C), *rstd_r = pointer(rstd, "rstd", R);
    const float *dy_rc = pointer(dy, "dy", R * C), *x_rc = x.data();

    WithoutGil release;
    add_row_sums({dgamma_c}, C, R, C, [&, C = C](float* partial_c, size_t r, size_t rows) {
        rmsnorm().backward(dx_rc ? dx_rc + r * C : nullptr, partial_c, x_rc + r * C, gamma_c, rstd_r + r,
                           dy_rc + r * C, rows, C);
    });
}

}  // namespace

void bind_rmsnorm(nb::module_& m) {
    bind_rows(m, "rmsnorm_forward", rmsnorm, &Rmsnorm::forward, "y", per_row("rstd"), "x", per_column("gamma"), "eps");
    def(m, "rmsnorm_backward", backward, "dx", "dgamma", "x", "gamma", "rstd", "dy");
}

}  // namespace chainrule
