// GELU, exact and in tanh form.        Derivation: docs/derivations/activations.md
#include "ops/gelu.hpp"

#include "simd/map.hpp"
#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

INLINE Vec forward(Vec x) {
    Vec gauss;
    return x * normal_cdf(x, &gauss);
}

INLINE Vec backward(Vec x, Vec dy) {
    Vec gauss;
    const Vec cdf = normal_cdf(x, &gauss);
    // forward was: y = x Φ(x); φ(x) = e^(-x²/2) / √(2π)                                                          [AC.17]
    return dy * fma(x, gauss * fill(0.398942280f), cdf);
}

constexpr float LINEAR = 1.59576912f;  // 2u = LINEAR x + CUBIC x³, LINEAR = 2 √(2/π)
constexpr float CUBIC = LINEAR * 0.044715f;

INLINE Vec clamp(Vec x) {  // beyond, σ(2u) is 0 or 1 and x³ could overflow; NaN stays NaN
    return min(fill(25.0f), max(fill(-25.0f), x));
}

INLINE Vec tanh_forward(Vec x) {
    const Vec c = clamp(x);
    return x * sigmoid<exp_negative>(c * fma(c * c, fill(CUBIC), fill(LINEAR)));  // [AC.18]
}

INLINE Vec tanh_backward(Vec x, Vec dy) {
    const Vec c = clamp(x), square = c * c;
    Vec slope;
    const Vec s = sigmoid<exp_negative>(c * fma(square, fill(CUBIC), fill(LINEAR)), &slope);
    // forward was: y = x σ(2u)                                                                                   [AC.19]
    return dy * fma(c * fma(square, fill(3 * CUBIC), fill(LINEAR)), slope, s);
}

}  // namespace

const Gelu gelu = {map<forward>, map<backward>, map<tanh_forward>, map<tanh_backward>};

}  // namespace chainrule::CHAINRULE_ISA
