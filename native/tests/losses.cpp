#include "ops/cross_entropy.hpp"
#include "ops/linear_cross_entropy.hpp"
#include "ops/softmax.hpp"
#include "runtime/pool.hpp"
#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

constexpr size_t SHAPES[][2] = {{2, 1}, {3, 16}, {5, 47}, {140, 131}};

double log_sum_exp(const double* x, size_t n) {
    const double peak = *std::max_element(x, x + n);
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += std::exp(x[i] - peak);
    return peak + std::log(total);
}

Doubles softmax_of(const Doubles& x, bool logarithm) {
    const double lse = log_sum_exp(x.data(), x.size());
    Doubles y(x.size());
    for (size_t i = 0; i < x.size(); ++i) y[i] = logarithm ? x[i] - lse : std::exp(x[i] - lse);
    return y;
}

void check_softmax(size_t R, size_t C, bool logarithm) {
    const Floats x = numbers(R * C, -5, 5), dy = numbers(R * C);
    Doubles y, dx;
    for (size_t r = 0; r < R; ++r) {
        const Doubles row(&x[r * C], &x[r * C] + C), slopes(&dy[r * C], &dy[r * C] + C);
        const Doubles own = softmax_of(row, logarithm);
        const Doubles down = gradient(row, [&](const Doubles& at) { return sum_of_products(softmax_of(at, logarithm), slopes); });
        y.insert(y.end(), own.begin(), own.end());
        dx.insert(dx.end(), down.begin(), down.end());
    }
    if (C == 1) std::fill(dx.begin(), dx.end(), 0.0);  // without what is left of differences
    const Floats saved = narrow(y);
    const std::string name = logarithm ? "log softmax" : "softmax";
    check(name, 1e-6, {{y}}, [&](const std::vector<float*>& out) {
        (logarithm ? softmax().log_forward : softmax().forward)(out[0], x.data(), R, C);
    });
    check(name + " backward", 2e-6, {{dx}}, [&](const std::vector<float*>& out) {
        (logarithm ? softmax().log_backward : softmax().backward)(out[0], saved.data(), dy.data(), R, C);
    });
}

// The loss of one row whose target distribution is gap · onehot + floor.
double cross_entropy_of(const double* x, size_t V, int64_t target, double gap, double floor) {
    const double lse = log_sum_exp(x, V);
    double loss = gap * (lse - x[target]);
    for (size_t v = 0; v < V; ++v) loss += floor * (lse - x[v]);
    return loss;
}

void check_cross_entropy(size_t R, size_t V, double smoothing) {
    const Floats x = numbers(R * V, -5, 5);
    Floats scale = numbers(R, 0.5, 1);
    scale[R / 2] = 0;  // a row that does not count
    const std::vector<int64_t> target = ids(R, V);
    const auto gap = static_cast<float>(1 - smoothing), floor = static_cast<float>(smoothing / V);
    Doubles loss(R), peak(R), total(R), dx;
    for (size_t r = 0; r < R; ++r) {
        const Doubles row(&x[r * V], &x[r * V] + V);
        const auto of = [&](const Doubles& at) { return scale[r] * cross_entropy_of(at.data(), V, target[r], gap, floor); };
        loss[r] = of(row);
        peak[r] = *std::max_element(row.begin(), row.end());
        total[r] = std::exp(log_sum_exp(row.data(), V) - peak[r]);
        const Doubles down = gradient(row, of);
        dx.insert(dx.end(), down.begin(), down.end());
    }
    check("cross-entropy", 2e-6, {{loss}, {peak}, {total}}, [&](const std::vector<float*>& out) {
        for_rows(R, V, [&](size_t r, size_t rows) {
            cross_entropy().forward(out[0] + r, out[1] + r, out[2] + r, &x[r * V], &target[r], &scale[r], gap, floor, rows, V);
        });
    });
    const Floats peaks = narrow(peak), totals = narrow(total);
    check("cross-entropy backward", 2e-6, {{dx}}, [&](const std::vector<float*>& out) {
        cross_entropy().backward(out[0], x.data(), peaks.data(), totals.data(), target.data(), scale.data(), gap, floor, R, V);
    });
}

// With the head: z = x Wᵀ, `rows` rows at a time.
void check_linear(size_t N, size_t V, size_t C, size_t rows, double smoothing) {
    const Floats x = numbers(N * C), w = numbers(V * C), scale = numbers(N, 0.5, 1), old = numbers(V * C);
    const std::vector<int64_t> target = ids(N, V);
    const auto gap = static_cast<float>(1 - smoothing), floor = static_cast<float>(smoothing / V);
    const auto row_loss = [&](const double* x_c, const double* w_vc, size_t n) {
        Doubles z(V);
        for (size_t v = 0; v < V; ++v)
            for (size_t c = 0; c < C; ++c) z[v] += x_c[c] * w_vc[v * C + c];
        return scale[n] * cross_entropy_of(z.data(), V, target[n], gap, floor);
    };
    const Doubles x_nc = wide(x), w_vc = wide(w);
    Doubles loss(N), dx, dw = wide(old);
    for (size_t n = 0; n < N; ++n) {
        const Doubles row(&x_nc[n * C], &x_nc[n * C] + C);
        loss[n] = row_loss(row.data(), w_vc.data(), n);
        const Doubles down = gradient(row, [&](const Doubles& at) { return row_loss(at.data(), w_vc.data(), n); });
        dx.insert(dx.end(), down.begin(), down.end());
    }
    const Doubles through_w = gradient(w_vc, [&](const Doubles& at) {
        double total = 0;
        for (size_t n = 0; n < N; ++n) total += row_loss(&x_nc[n * C], at.data(), n);
        return total;
    });
    for (size_t i = 0; i < dw.size(); ++i) dw[i] += through_w[i];
    const LinearCrossEntropy call = {x.data(), w.data(), scale.data(), target.data(), gap, floor, N, V, C, rows,
                                     Precision::fp32};
    Floats peak(N), total(N);
    check("linear cross-entropy, fused", 5e-6, {{loss}, {dx}, {dw, old}}, [&](const std::vector<float*>& out) {
        call.forward(out[0], peak.data(), total.data(), out[1], out[2], true, scale.data());
    });
    check("linear cross-entropy, overwritten", 5e-6, {{through_w}, {through_w}}, [&](const std::vector<float*>& out) {
        call.forward(Floats(N).data(), peak.data(), total.data(), nullptr, out[0], false, scale.data());
        call.backward(nullptr, out[1], false, peak.data(), total.data(), scale.data());
    });
    check("linear cross-entropy backward", 5e-6, {{dx}, {dw, old}}, [&](const std::vector<float*>& out) {
        call.backward(out[0], out[1], true, peak.data(), total.data(), scale.data());
    });
}

}  // namespace

void check_losses() {
    for (const auto& [R, C] : SHAPES) {
        check_softmax(R, C, false);
        check_softmax(R, C, true);
        if (C == 1) continue;  // one class costs nothing
        check_cross_entropy(R, C, 0);
        check_cross_entropy(R, C, 0.1);
    }
    check_linear(7, 37, 5, 3, 0);
    check_linear(19, 61, 9, 8, 0.1);
}

}  // namespace chainrule::tests
