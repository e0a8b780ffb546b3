// Kernels beside plain loops in double precision: on every ISA that the CPU has, with 1, 2 and 3 threads.
//
// A family of kernels is a function below, in a file of its own. A gradient is checked against central differences of the
// plain forward, so no derivative is written here a second time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/isa.hpp"

namespace chainrule::tests {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Random floats between low and high, others in each call, the same in each run.
Floats numbers(size_t n, double low = -1, double high = 1);
std::vector<int64_t> ids(size_t n, size_t below);

inline Doubles wide(const Floats& x) { return {x.begin(), x.end()}; }
inline Floats narrow(const Doubles& x) { return {x.begin(), x.end()}; }
inline double sum_of_products(const Doubles& a, const Doubles& b) {
    double total = 0;
    for (size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
    return total;
}

double largest_of(const Doubles& x);

// ∂loss/∂x by central differences.
Doubles gradient(Doubles x, const std::function<double(const Doubles& x)>& loss);

struct Output {
    Doubles want;
    Floats start = {};  // what the kernel adds to; without it NaN, so that an element it forgets is noticed
    double terms = 0;   // how large the terms of a sum are, if they may cancel
};

enum class Bits { of_an_isa, of_all };  // must be the same for any number of threads; on every ISA too

// Runs a kernel and compares its outputs with what is wanted: `tolerance` is a fraction of the largest wanted number,
// or of the terms if these are larger.
void check(const std::string& name, double tolerance, const std::vector<Output>& outputs,
           const std::function<void(const std::vector<float*>& out)>& run, Bits bits = Bits::of_an_isa);

// The word of Philox4x64-10 at a flat position, and whether dropout keeps the value there (runtime/philox.hpp).
uint32_t random_word(const uint64_t (&key)[5], uint64_t position);
inline bool keeps(const uint64_t (&key)[5], uint32_t threshold, uint64_t position) {
    return random_word(key, position) >= threshold;
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double silu(double x) { return x * sigmoid(x); }
inline double relu(double x) { return x > 0 ? x : 0; }
inline double normal_cdf(double x) { return std::erfc(-x * std::sqrt(0.5)) / 2; }
inline double gelu_exact(double x) { return x * normal_cdf(x); }
inline double gelu_by_tanh(double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// x with `digits` binary digits, ties to even, and a step of 2^least at the smallest: bf16 is (8, -133), fp16 (11, -24).
double rounded(double x, int digits, int least);

void check_gemm();
void check_attention();
void check_elementwise();
void check_norms();
void check_losses();
void check_recurrent();
void check_optimizers();
void check_pooling();
void check_embedding();
void check_word2vec();
void check_panels();
void check_cache();
void check_memory();

}  // namespace chainrule::tests
