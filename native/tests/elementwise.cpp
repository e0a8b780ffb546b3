#include "ops/elementwise.hpp"

#include "ops/activations.hpp"
#include "ops/dropout.hpp"
#include "ops/gelu.hpp"
#include "ops/rotary.hpp"
#include "simd/functions.hpp"
#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

constexpr size_t SIZES[] = {1, 15, 16, 37, 100};

using Function = double(double);

Doubles mapped(const Floats& x, Function* f) {
    Doubles y(x.size());
    for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
    return y;
}

// Backward kernels take x, or y = f(x).
template <class Table, class Forward, class Backward>
void check_pair(const char* name, const Table& (*forward_of)(), Forward forward, Function* f,
                Backward backward, bool from_output = false) {
    for (size_t n : SIZES) {
        const double reach = from_output ? 3 : 6;  // beyond, a rounded output says little of its slope
        const Floats x = numbers(n, -reach, reach), dy = numbers(n);
        const Doubles y = mapped(x, f), slopes = wide(dy);
        check(name, 1e-6, {{y}}, [&](const std::vector<float*>& out) { (forward_of().*forward)(out[0], x.data(), n); });
        const Doubles dx = gradient(wide(x), [&](const Doubles& at) {
            double total = 0;
            for (size_t i = 0; i < n; ++i) total += slopes[i] * f(at[i]);
            return total;
        });
        const Floats from = from_output ? narrow(y) : x;
        const double tolerance = from_output ? 1e-4 : 1e-6;
        check(std::string(name) + " backward", tolerance, {{dx}},
              [&](const std::vector<float*>& out) { backward(out[0], from.data(), dy.data(), n); });
    }
}

template <class Kernel>
void check_forward(const char* name, Function* f, double low, double high, double tolerance, Kernel kernel) {
    for (size_t n : SIZES) {
        const Floats x = numbers(n, low, high);
        check(name, tolerance, {{mapped(x, f)}}, [&](const std::vector<float*>& out) { kernel(out[0], x.data(), n); });
    }
}

void check_functions() {
    const auto exponential = [](double x) { return std::exp(x); };
    check_forward("exp", exponential, -5, 5, 1e-6, [](auto... a) { functions().exp(a...); });
    check_forward("exp of large numbers", exponential, 60, 88, 1e-6, [](auto... a) { functions().exp(a...); });
    check_forward("normal cdf", normal_cdf, -6, 6, 1e-6, [](auto... a) { functions().normal_cdf(a...); });
}

void check_activations() {
    check_pair("sigmoid", functions, &Functions::sigmoid, sigmoid,
               [](auto... a) { activations().sigmoid_backward(a...); }, true);
    check_pair("tanh", functions, &Functions::tanh, std::tanh, [](auto... a) { activations().tanh_backward(a...); }, true);
    check_pair("relu", activations, &Activations::relu_forward, relu,
               [](auto... a) { activations().relu_backward(a...); }, true);
    check_pair("silu", activations, &Activations::silu_forward, silu, [](auto... a) { activations().silu_backward(a...); });
    check_pair("gelu", gelu, &Gelu::forward, gelu_exact, [](auto... a) { gelu().backward(a...); });
    check_pair("gelu by tanh", gelu, &Gelu::tanh_forward, gelu_by_tanh, [](auto... a) { gelu().tanh_backward(a...); });
}

void check_swiglu() {
    constexpr size_t n = 37;
    const Floats gate = numbers(n, -6, 6), up = numbers(n), dy = numbers(n);
    Doubles y(n), dup(n);
    for (size_t i = 0; i < n; ++i) {
        y[i] = silu(gate[i]) * up[i];
        dup[i] = silu(gate[i]) * dy[i];
    }
    const Doubles dgate = gradient(wide(gate), [&](const Doubles& at) {
        double total = 0;
        for (size_t i = 0; i < n; ++i) total += dy[i] * silu(at[i]) * up[i];
        return total;
    });
    check("swiglu", 1e-6, {{y}},
          [&](const std::vector<float*>& out) { activations().swiglu_forward(out[0], gate.data(), up.data(), n); });
    check("swiglu backward", 1e-6, {{dgate}, {dup}}, [&](const std::vector<float*>& out) {
        activations().swiglu_backward(out[0], out[1], gate.data(), up.data(), dy.data(), n);
    });
}

void check_add_and_mul() {
    for (size_t n : SIZES) {
        const Floats a = numbers(n), b = numbers(n);
        Doubles sums(n), products(n);
        for (size_t i = 0; i < n; ++i) sums[i] = double(a[i]) + b[i], products[i] = double(a[i]) * b[i];
        check("add", 1e-7, {{sums}},
              [&](const std::vector<float*>& out) { elementwise().add(out[0], a.data(), b.data(), n); }, Bits::of_all);
        check("mul", 1e-7, {{products}},
              [&](const std::vector<float*>& out) { elementwise().mul(out[0], a.data(), b.data(), n); }, Bits::of_all);
    }
}

void check_dropout() {
    constexpr size_t FIRST = 48, n = 155;
    constexpr uint64_t KEY[5] = {7, 11, 13, 17, 19};
    constexpr uint32_t THRESHOLD = 0x40000000;  // p = 1/4
    const KeepMask mask(KEY, THRESHOLD);
    const Floats x = numbers(n), dy = numbers(n);
    Doubles y(n), dx(n);
    std::vector<uint8_t> kept(n), found(n);
    for (size_t i = 0; i < n; ++i) {
        kept[i] = keeps(KEY, THRESHOLD, FIRST + i);
        y[i] = kept[i] ? 4.0 / 3 * x[i] : 0;
        dx[i] = kept[i] ? 4.0 / 3 * dy[i] : 0;
    }
    const Doubles mask_wanted(kept.begin(), kept.end());
    check("dropout", 1e-6, {{y}, {mask_wanted}}, [&](const std::vector<float*>& out) {
        dropout().forward(out[0], found.data(), x.data(), mask, 4.0f / 3, FIRST, n);
        std::copy(found.begin(), found.end(), out[1]);
    });
    check("dropout backward", 1e-6, {{dx}}, [&](const std::vector<float*>& out) {
        dropout().backward(out[0], kept.data(), dy.data(), 4.0f / 3, n);
    });
}

void check_rotary() {
    constexpr size_t T = 5, H = 19, ROW = 2 * H + 2;
    const Floats x = numbers(T * ROW), angle = numbers(T * H, -3, 3);
    Floats cosine(T * H), sine(T * H);
    for (size_t i = 0; i < T * H; ++i) cosine[i] = std::cos(angle[i]), sine[i] = std::sin(angle[i]);
    for (float sign : {1.0f, -1.0f})
        for (bool halves : {true, false}) {
            Doubles want(T * 2 * H);
            for (size_t t = 0; t < T; ++t)
                for (size_t i = 0; i < H; ++i) {
                    const size_t first = halves ? i : 2 * i, second = halves ? i + H : 2 * i + 1;
                    const double c = cosine[t * H + i], s = sign * sine[t * H + i];
                    const double p = x[t * ROW + first], q = x[t * ROW + second];
                    want[t * 2 * H + first] = p * c - q * s;
                    want[t * 2 * H + second] = p * s + q * c;
                }
            check("rotary", 1e-6, {{want}}, [&](const std::vector<float*>& out) {
                const auto rotate = halves ? rotary().rotate_halves : rotary().rotate_neighbors;
                rotate(out[0], x.data(), ROW, cosine.data(), sine.data(), sign, T, H);
            });
        }
}

}  // namespace

void check_elementwise() {
    check_functions();
    check_activations();
    check_swiglu();
    check_add_and_mul();
    check_dropout();
    check_rotary();
}

}  // namespace chainrule::tests
