// Sigmoid, tanh, ReLU, SiLU and SwiGLU.        Derivations: docs/derivations/activations.md
#include "ops/activations.hpp"

#include "simd/map.hpp"
#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

INLINE Vec sigmoid_backward(Vec y, Vec dy) { return dy * (y * (fill(1) - y)); }  // forward was: y = σ(x)      [AC.1]

INLINE Vec tanh_backward(Vec y, Vec dy) { return dy * (fill(1) - y * y); }  // forward was: y = tanh x         [AC.2]

INLINE Vec relu(Vec x) { return max(fill(0), x); }  // in this order NaN stays NaN

INLINE Vec relu_backward(Vec y, Vec dy) {  // forward was: y = max(x, 0)                                        [AC.3]
    return dy * select(y > fill(0), fill(1), fill(0));
}

INLINE Vec silu(Vec x) { return x * sigmoid(x); }

INLINE Vec silu_backward(Vec x, Vec dy) {
    Vec slope;
    const Vec s = sigmoid(x, &slope);
    return dy * fma(x, slope, s);  // forward was: y = x σ(x)                                                  [AC.12]
}

INLINE Vec swiglu(Vec gate, Vec up) { return silu(gate) * up; }

void swiglu_backward(float* dgate_n, float* dup_n, const float* gate_n, const float* up_n, const float* dy_n,
                     size_t n) {
    each_vector(n, [=](size_t i, auto left) {
        const Vec gate = load_next(gate_n + i, left), dy = load_next(dy_n + i, left);
        Vec slope;
        const Vec s = sigmoid(gate, &slope);
        // forward was: y = silu(gate) up                                                                 [AC.13] [AC.14]
        store_next(dgate_n + i, dy * load_next(up_n + i, left) * fma(gate, slope, s), left);
        store_next(dup_n + i, dy * (gate * s), left);
    });
}

}  // namespace

const Activations activations = {map<sigmoid_backward>, map<tanh_backward>, map<relu>,   map<relu_backward>,
                                 map<silu>,             map<silu_backward>, map<swiglu>, swiglu_backward};

}  // namespace chainrule::CHAINRULE_ISA
