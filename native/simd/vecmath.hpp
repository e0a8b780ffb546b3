// exp, tanh, the logistic function and the normal distribution of sixteen floats, from +, ×, ÷ and fma alone.
//
// Largest errors over all floats in units in the last place, with fused multiply-add (tests/kernels/simd/test_vecmath.py
// measures them): exp 1, tanh 2, sigmoid 3; normal_cdf 3e-7, absolute, and relative where x > -5. NaN stays NaN.
#pragma once

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

// The polynomial with these coefficients, highest power first.
template <class... More>
INLINE Vec polynomial(Vec x, float first, More... more) {
    Vec p = fill(first);
    ((p = fma(p, x, fill(more))), ...);
    return p;
}

// x = n ln 2 + r with a whole number n and |r| <= ln 2 / 2: gives 1.5 · 2^23 + n, whose last bits are n, and e^r.
INLINE Vec exp_reduced(Vec x, Vec* shifted) {
    const Vec magic = fill(12582912.0f);  // 1.5 · 2^23: adding it rounds to an integer
    *shifted = fma(x, fill(1.44269504f), magic);
    const Vec n = *shifted - magic;
    Vec r = fma(n, fill(-0.693359375f), x);  // ln 2 in two parts, the first one exact
    r = fma(n, fill(2.12194440e-4f), r);
    const Vec square = r * r;  // Estrin's scheme: a chain of three steps, not five
    Vec p = fma(polynomial(r, 1.9875691500e-4f, 1.3981999507e-3f), square,
                polynomial(r, 8.3334519073e-3f, 4.1665795894e-2f));
    p = fma(p, square, polynomial(r, 1.6666665459e-1f, 5.0000001201e-1f));
    return fma(p, square, r) + fill(1.0f);
}

// e^x = 2^n e^r. Exactly 0 below -103.97, subnormal results below 2^-126, infinity above 88.72.
INLINE Vec exp(Vec x) {
    const Vec clamped = min(fill(89.0f), max(fill(-104.0f), x));  // in this order NaN stays NaN
    Vec shifted;
    const Vec e = exp_reduced(clamped, &shifted);
    // 2^n as two factors, each a normal number even where n is -150 or 128.
    const Int integer = bits(shifted) - fill_int(0x4b400000);
    const Int half = halve(integer);
    const Vec first = from_bits(shift_left(half + fill_int(127), 23));
    const Vec second = from_bits(shift_left(integer - half + fill_int(127), 23));
    return e * first * second;
}

// e^x for x <= 0, for softmax, in two thirds of the time: 0 below -87, where a softmax is 0 in any precision.
INLINE Vec exp_negative(Vec x) {
    Vec shifted;
    const Vec e = exp_reduced(x, &shifted);
    const Vec power = from_bits(shift_left(bits(shifted), 23) + fill_int(127 << 23));
    return select(x < fill(-87.0f), fill(0.0f), e * power);  // NaN is not below, and e is NaN
}

// tanh x = x + x³ p(x²) near 0, 1 - 2 / (e^2|x| + 1) with the sign of x elsewhere.
INLINE Vec tanh(Vec x) {
    const Vec a = abs(x), z = x * x;
    const Vec near = polynomial(z, -5.70498872745e-3f, 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f,
                                -3.33332819422e-1f);
    const Vec far = fill(1.0f) - fill(2.0f) / (exp(a + a) + fill(1.0f));
    const Vec signed_far = from_bits(bits(far) | (bits(x) & fill_int(INT32_MIN)));
    return select(a < fill(0.625f), fma(near * z, x, x), signed_far);
}

// σ(x) = 1 / (1 + e^-x) and its slope σ (1 - σ), from e^-|x|, which neither overflows nor cancels. With `exp_negative`
// σ is 0 or 1 and the slope 0 where |x| > 87.
template <Vec exponential(Vec) = exp>
INLINE Vec sigmoid(Vec x, Vec* slope) {
    const Vec e = exponential(fill(0.0f) - abs(x));
    const Vec r = fill(1.0f) / (fill(1.0f) + e);
    *slope = e * r * r;
    return select(x < fill(0.0f), e * r, r);
}
template <Vec exponential(Vec) = exp>
INLINE Vec sigmoid(Vec x) {
    Vec slope;
    return sigmoid<exponential>(x, &slope);
}

// Φ(x) and φ(x) √(2π) = e^(-x²/2). erfc(z) = e^(-z²) p(s), s = 2k/(z + k) - 1, k = 2.5: the polynomial of ops/neural/gelu.py. [AC.15]
INLINE Vec normal_cdf(Vec x, Vec* gauss) {
    const Vec z = abs(x) * fill(0.707106781f);
    const Vec s = fill(5.0f) / (z + fill(2.5f)) - fill(1.0f);
    const Vec p = polynomial(s, 0.0003151761293f, -0.0008190567934f, -0.002717328283f, 0.003995022789f,
                             0.03994086506f, 0.1250302726f, 0.2517117116f, 0.3717369452f, 0.2108063885f);
    *gauss = exp(x * x * fill(-0.5f));
    const Vec tail = p * *gauss * fill(0.5f);  // Φ(-|x|)    [AC.16]
    return select(x > fill(0.0f), fill(1.0f) - tail, tail);
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
