// Layer normalisation over the last axis.        Derivation: docs/derivations/layernorm.md
#include "layernorm.hpp"

#include "vec.hpp"

namespace chainrule::CHAINRULE_LEVEL {
namespace {

void forward(float* y_rc, float* mean_r, float* rstd_r, const float* x_rc, const float* gamma_c, const float* beta_c,
             float eps, size_t R, size_t C) {
    const size_t whole = C - C % LANES;
    for (size_t r = 0; r < R; ++r) {
        const float* x = x_rc + r * C;
        float* y = y_rc + r * C;

        Vec total = fill(0);
        for (size_t c = 0; c < whole; c += LANES) total = total + load(x + c);
        float mean = sum(total);
        for (size_t c = whole; c < C; ++c) mean += x[c];
        mean /= C;

        // Two passes: E[x²] - E[x]² would cancel for a large mean.
        Vec squares = fill(0);
        for (size_t c = 0; c < whole; c += LANES) {
            const Vec d = load(x + c) - fill(mean);
            squares = squares + d * d;
        }
        float var = sum(squares);
        for (size_t c = whole; c < C; ++c) var += (x[c] - mean) * (x[c] - mean);
        var /= C;
        const float rstd = 1 / __builtin_sqrtf(var + eps);

        for (size_t c = 0; c < whole; c += LANES)
            store(y + c, (load(x + c) - fill(mean)) * fill(rstd) * load(gamma_c + c) + load(beta_c + c));
        for (size_t c = whole; c < C; ++c) y[c] = (x[c] - mean) * rstd * gamma_c[c] + beta_c[c];
        mean_r[r] = mean;
        rstd_r[r] = rstd;
    }
}

void input_gradient(float* dx, const float* x, const float* gamma, float mean, float rstd, const float* dy, size_t C) {
    const size_t whole = C - C % LANES;
    Vec sum_dxhat = fill(0), sum_dxhat_xhat = fill(0);
    for (size_t c = 0; c < whole; c += LANES) {
        const Vec dxhat = load(dy + c) * load(gamma + c);
        const Vec xhat = (load(x + c) - fill(mean)) * fill(rstd);
        sum_dxhat = sum_dxhat + dxhat;
        sum_dxhat_xhat = sum_dxhat_xhat + dxhat * xhat;
    }
    float mean_dxhat = sum(sum_dxhat), mean_dxhat_xhat = sum(sum_dxhat_xhat);
    for (size_t c = whole; c < C; ++c) {
        const float dxhat = dy[c] * gamma[c];
        mean_dxhat += dxhat;
        mean_dxhat_xhat += dxhat * ((x[c] - mean) * rstd);
    }
    mean_dxhat /= C;
    mean_dxhat_xhat /= C;

    for (size_t c = 0; c < whole; c += LANES) {
        const Vec dxhat = load(dy + c) * load(gamma + c);
        const Vec xhat = (load(x + c) - fill(mean)) * fill(rstd);
        store(dx + c, fill(rstd) * (dxhat - fill(mean_dxhat) - xhat * fill(mean_dxhat_xhat)));
    }
    for (size_t c = whole; c < C; ++c) {
        const float xhat = (x[c] - mean) * rstd;
        dx[c] = rstd * (dy[c] * gamma[c] - mean_dxhat - xhat * mean_dxhat_xhat);
    }
}

void parameter_gradients(float* dgamma, float* dbeta,
                         const float* x, float mean, float rstd, const float* dy, size_t C) {
    const size_t whole = C - C % LANES;
    for (size_t c = 0; c < whole; c += LANES) {
        const Vec xhat = (load(x + c) - fill(mean)) * fill(rstd);
        store(dgamma + c, load(dgamma + c) + load(dy + c) * xhat);
        store(dbeta + c, load(dbeta + c) + load(dy + c));
    }
    for (size_t c = whole; c < C; ++c) {
        dgamma[c] += dy[c] * ((x[c] - mean) * rstd);
        dbeta[c] += dy[c];
    }
}

void backward(float* dx_rc, float* dgamma_c, float* dbeta_c, const float* x_rc, const float* gamma_c,
              const float* mean_r, const float* rstd_r, const float* dy_rc, size_t R, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const float *x = x_rc + r * C, *dy = dy_rc + r * C;
        if (dx_rc) input_gradient(dx_rc + r * C, x, gamma_c, mean_r[r], rstd_r[r], dy, C);
        if (dgamma_c) parameter_gradients(dgamma_c, dbeta_c, x, mean_r[r], rstd_r[r], dy, C);
    }
}

}  // namespace

const Layernorm layernorm = {forward, backward};

}  // namespace chainrule::CHAINRULE_LEVEL
