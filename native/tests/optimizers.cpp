#include "ops/optimizers.hpp"

#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

constexpr size_t n = 37;

struct Inputs {
    Floats w = numbers(n), m = numbers(n), v = numbers(n, 0, 1), g = numbers(n);
};

// What `update(w, m, v, g)` makes of each parameter, in double; each gradient counts 0.7 times.
template <class Update>
std::vector<Output> wanted(const Inputs& in, Update update) {
    std::vector<Output> outputs = {{wide(in.w), in.w}, {wide(in.m), in.m}, {wide(in.v), in.v}};
    for (size_t i = 0; i < n; ++i) update(outputs[0].want[i], outputs[1].want[i], outputs[2].want[i],
                                         0.7 * in.g[i]);
    return outputs;
}

double sign(double x) { return (x > 0) - (x < 0); }

void check_descent() {
    const Inputs in;
    check("sgd", 1e-6, wanted(in, [](double& w, double&, double&, double g) { w -= 0.1 * (0.01 * w + g); }),
          [&](const std::vector<float*>& out) { optimizers().sgd(out[0], in.g.data(), 0.7f, 0.01f, 0.1f, n); });
    for (bool nesterov : {false, true})
        check("momentum", 1e-6, wanted(in, [=](double& w, double& m, double&, double g) {
                  const double move = 0.5 * (0.01 * w + g);
                  m = 0.9 * m + move;
                  w -= 0.1 * (nesterov ? 0.9 * m + move : m);
              }),
              [&](const std::vector<float*>& out) {
                  optimizers().momentum(out[0], out[1], in.g.data(), 0.7f, 0.01f, 0.9f, 0.5f, 0.1f, nesterov, n);
              });
}

void check_adaptive() {
    const Inputs in;
    check("rms", 1e-6, wanted(in, [](double& w, double&, double& v, double g) {
              v = 0.9 * v + 0.1 * g * g;
              w -= 0.1 * g / (std::sqrt(v + 1e-4) + 1e-3);
          }),
          [&](const std::vector<float*>& out) {
              optimizers().rms(out[0], out[2], in.g.data(), 0.7f, 0.9f, 0.1f, 1e-4f, 1e-3f, 0.1f, n);
          });
    check("adam", 1e-6, wanted(in, [](double& w, double& m, double& v, double g) {
              m = 0.9 * m + 0.1 * g;
              v = 0.95 * v + 0.05 * g * g;
              w = 0.99 * w - 0.1 * m / (std::sqrt(v / 0.3 + 1e-4) + 1e-3);
          }),
          [&](const std::vector<float*>& out) {
              optimizers().adam(out[0], out[1], out[2], in.g.data(), 0.7f, 0.9f, 0.1f, 0.95f, 0.05f, 0.3f, 1e-4f, 1e-3f,
                                0.1f, 0.99f, n);
          });
    check("lion", 1e-6, wanted(in, [](double& w, double& m, double&, double g) {
              w = 0.99 * w - 0.1 * sign(0.9 * m + 0.1 * g);
              m = 0.99 * m + 0.01 * g;
          }),
          [&](const std::vector<float*>& out) {
              optimizers().lion(out[0], out[1], in.g.data(), 0.7f, 0.9f, 0.1f, 0.99f, 0.01f, 0.1f, 0.99f, n);
          });
}

void check_clipping() {
    const Inputs in;
    double squares = 0;
    Doubles scaled;
    for (float g : in.g) squares += double(g) * g, scaled.push_back(0.3 * g);
    check("sum of squares", 1e-6, {{{squares}}}, [&](const std::vector<float*>& out) {
        out[0][0] = static_cast<float>(optimizers().sum_of_squares(in.g.data(), n));
    });
    check("scale", 1e-6, {{scaled, in.g}}, [&](const std::vector<float*>& out) { optimizers().scale(out[0], 0.3f, n); });
}

}  // namespace

void check_optimizers() {
    check_descent();
    check_adaptive();
    check_clipping();
}

}  // namespace chainrule::tests
