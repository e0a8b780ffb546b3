#include "ops/batchnorm.hpp"
#include "ops/layernorm.hpp"
#include "ops/rmsnorm.hpp"
#include "runtime/row_sums.hpp"
#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

constexpr double EPS = 1e-5;
constexpr size_t SHAPES[][2] = {{4, 5}, {3, 16}, {7, 33}, {130, 131}};  // the last one is work for several threads

struct Statistics {
    double mean = 0, var = 0, rstd = 0;
};

// Of n numbers `step` apart; without `centered`, RMSNorm's.
Statistics statistics(const double* x, size_t step, size_t n, bool centered) {
    Statistics s;
    for (size_t i = 0; i < n && centered; ++i) s.mean += x[i * step] / n;
    for (size_t i = 0; i < n; ++i) s.var += (x[i * step] - s.mean) * (x[i * step] - s.mean) / n;
    s.rstd = 1 / std::sqrt(s.var + EPS);
    return s;
}

struct Inputs {
    size_t R, C;
    Floats x = numbers(R * C, -2, 3), gamma = numbers(C, 0.5, 1.5), beta = numbers(C), dy = numbers(R * C);
    Floats old = numbers(2 * C);  // what gradients of parameters are added to
};

// Σ dy (x̂ γ) over one row, or one column, from `first` on: each depends on its own numbers only.
Doubles input_gradient(const Inputs& in, bool by_row, bool centered) {
    const size_t count = by_row ? in.R : in.C, n = by_row ? in.C : in.R, step = by_row ? 1 : in.C;
    Doubles dx(in.R * in.C);
    for (size_t k = 0; k < count; ++k) {
        const size_t first = by_row ? k * in.C : k;
        Doubles x(n);
        for (size_t i = 0; i < n; ++i) x[i] = in.x[first + i * step];
        const Doubles own = gradient(x, [&](const Doubles& at) {
            const Statistics s = statistics(at.data(), 1, n, centered);
            double total = 0;
            for (size_t i = 0; i < n; ++i)
                total += in.dy[first + i * step] * (at[i] - s.mean) * s.rstd * in.gamma[by_row ? i : k];
            return total;
        });
        for (size_t i = 0; i < n; ++i) dx[first + i * step] = own[i];
    }
    return dx;
}

struct Rows {  // of a norm over rows, all that is wanted
    Doubles y, mean, rstd, dx, dgamma, dbeta;
};

Rows plain_rows(const Inputs& in, bool centered) {
    Rows want;
    const Doubles x = wide(in.x);
    want.dgamma = wide(Floats(in.old.begin(), in.old.begin() + in.C));
    want.dbeta = wide(Floats(in.old.begin() + in.C, in.old.end()));
    for (size_t r = 0; r < in.R; ++r) {
        const Statistics s = statistics(&x[r * in.C], 1, in.C, centered);
        want.mean.push_back(s.mean);
        want.rstd.push_back(s.rstd);
        for (size_t c = 0; c < in.C; ++c) {
            const double xhat = (x[r * in.C + c] - s.mean) * s.rstd, dy = in.dy[r * in.C + c];
            want.y.push_back(xhat * in.gamma[c] + (centered ? in.beta[c] : 0));
            want.dgamma[c] += dy * xhat;
            want.dbeta[c] += dy;
        }
    }
    want.dx = input_gradient(in, true, centered);
    return want;
}

void check_layernorm(size_t R, size_t C) {
    const Inputs in{R, C};
    const Rows want = plain_rows(in, true);
    check("layernorm", 2e-6, {{want.y}, {want.mean}, {want.rstd}}, [&](const std::vector<float*>& out) {
        for_rows(R, C, [&](size_t r, size_t rows) {
            layernorm().forward(out[0] + r * C, out[1] + r, out[2] + r, &in.x[r * C], in.gamma.data(), in.beta.data(),
                                static_cast<float>(EPS), rows, C);
        });
    });
    const Floats mean = narrow(want.mean), rstd = narrow(want.rstd), dgamma(in.old.begin(), in.old.begin() + C);
    const Floats dbeta(in.old.begin() + C, in.old.end());
    check("layernorm backward", 5e-6, {{want.dx}, {want.dgamma, dgamma}, {want.dbeta, dbeta}},
          [&](const std::vector<float*>& out) {
              add_row_sums({out[1], out[2]}, C, R, C, [&](float* partial_2c, size_t r, size_t rows) {
                  layernorm().backward(out[0] + r * C, partial_2c, partial_2c + C, &in.x[r * C], in.gamma.data(), &mean[r],
                                       &rstd[r], &in.dy[r * C], rows, C);
              });
          });
}

void check_rmsnorm(size_t R, size_t C) {
    const Inputs in{R, C};
    const Rows want = plain_rows(in, false);
    check("rmsnorm", 2e-6, {{want.y}, {want.rstd}}, [&](const std::vector<float*>& out) {
        for_rows(R, C, [&](size_t r, size_t rows) {
            rmsnorm().forward(out[0] + r * C, out[1] + r, &in.x[r * C], in.gamma.data(), static_cast<float>(EPS), rows, C);
        });
    });
    const Floats rstd = narrow(want.rstd), dgamma(in.old.begin(), in.old.begin() + C);
    check("rmsnorm backward", 5e-6, {{want.dx}, {want.dgamma, dgamma}}, [&](const std::vector<float*>& out) {
        add_row_sums({out[1]}, C, R, C, [&](float* partial_c, size_t r, size_t rows) {
            rmsnorm().backward(out[0] + r * C, partial_c, &in.x[r * C], in.gamma.data(), &rstd[r], &in.dy[r * C], rows, C);
        });
    });
}

void check_batchnorm(size_t R, size_t C) {
    const Inputs in{R, C};
    const Doubles x = wide(in.x);
    Doubles y(R * C), mean(C), var(C), rstd(C), sums(2 * C);
    for (size_t c = 0; c < C; ++c) {
        const Statistics s = statistics(&x[c], C, R, true);
        mean[c] = s.mean, var[c] = s.var, rstd[c] = s.rstd;
        for (size_t r = 0; r < R; ++r) {
            const double xhat = (x[r * C + c] - s.mean) * s.rstd;
            y[r * C + c] = xhat * in.gamma[c] + in.beta[c];
            sums[c] += in.dy[r * C + c] * xhat;
            sums[C + c] += in.dy[r * C + c];
        }
    }
    check("batchnorm", 2e-6, {{y}, {mean}, {var}, {rstd}}, [&](const std::vector<float*>& out) {
        batchnorm_forward(out[0], out[1], out[2], out[3], in.x.data(), in.gamma.data(), in.beta.data(),
                          static_cast<float>(EPS), R, C);
    });
    const Floats means = narrow(mean), rstds = narrow(rstd), zeros(C);
    check("batchnorm backward", 5e-6, {{input_gradient(in, false, true)}, {sums}}, [&](const std::vector<float*>& out) {
        batchnorm_backward(out[0], out[1], in.x.data(), in.gamma.data(), means.data(), rstds.data(), in.dy.data(),
                           zeros.data(), zeros.data(), R, C);
    });
    const Floats running = numbers(C);
    Doubles moved(C);
    for (size_t c = 0; c < C; ++c) moved[c] = 0.9 * running[c] + 0.1 * means[c];
    check("running statistics", 1e-6, {{moved, running}}, [&](const std::vector<float*>& out) {
        batchnorm().update_running(out[0], means.data(), 0.9f, 0.1f, C);
    }, Bits::of_all);
}

}  // namespace

void check_norms() {
    for (const auto& [R, C] : SHAPES) {
        check_layernorm(R, C);
        check_rmsnorm(R, C);
        check_batchnorm(R, C);
    }
}

}  // namespace chainrule::tests
