#include "ops/elementwise.hpp"

#include <numeric>

#include "bind/kernels.hpp"
#include "ops/optimizers.hpp"

namespace chainrule {
namespace {

// y = a · b for an operation of two arrays; b may lack leading axes of a, along which it is repeated.
void pairs(void (*Elementwise::*kernel)(float*, const float*, const float*, size_t), const Flat<float>& y,
           const Flat<const float>& a, const Flat<const float>& b) {
    const size_t n = a.size(), C = b.size();
    float* y_n = pointer(y, "y", n);
    const float *a_n = a.data(), *b_c = b.data();
    if (C ? n % C : n) throw std::invalid_argument("b does not fit into a");
    const auto run = elementwise().*kernel;

    WithoutGil release;
    if (C == n) {
        for_elements(n, [&](size_t i, size_t count) { run(y_n + i, a_n + i, b_c + i, count); });
    } else if (C == 1) {
        std::array<float, 256> same;
        same.fill(b_c[0]);
        for_elements(n, [&](size_t first, size_t count) {
            for (size_t i = first, end = first + count; i < end; i += same.size())
                run(y_n + i, a_n + i, same.data(), std::min(same.size(), end - i));
        });
    } else {
        for_rows(n / C, C, [&](size_t r, size_t rows) {
            for (size_t i = r * C; i < (r + rows) * C; i += C) run(y_n + i, a_n + i, b_c, C);
        });
    }
}

void add(Flat<float> y, Flat<const float> a, Flat<const float> b) {
    pairs(&Elementwise::add, y, a, b);
}

void mul(Flat<float> y, Flat<const float> a, Flat<const float> b) {
    pairs(&Elementwise::mul, y, a, b);
}

// total = factor times the sum of what sum_of(x_n, n) finds in blocks of fixed size, in double: the same bits for any
// number of threads.
template <class Sum>
void total_of(Flat<float> total, Flat<const float> x, double factor, Sum sum_of) {
    const size_t n = x.size();
    float* out = pointer(total, "total", 1);
    const float* x_n = x.data();

    WithoutGil release;
    std::vector<double> sums((n + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS);
    for_row_blocks(n, 1, BLOCK_ELEMENTS,
                   [&](size_t block, size_t i, size_t count) { sums[block] = sum_of(x_n + i, count); });
    *out = static_cast<float>(factor * std::accumulate(sums.begin(), sums.end(), 0.0));
}

void sum(Flat<float> total, Flat<const float> x) {
    total_of(total, x, 1, [](const float* x_n, size_t n) { return std::accumulate(x_n, x_n + n, 0.0); });
}

void l2_loss(Flat<float> total, Flat<const float> x) {
    total_of(total, x, 0.5, [](const float* x_n, size_t n) { return optimizers().sum_of_squares(x_n, n); });
}

}  // namespace

void bind_elementwise(nb::module_& m) {
    def(m, "add", add, "y", "a", "b");
    def(m, "mul", mul, "y", "a", "b");
    def(m, "sum", sum, "total", "x");
    def(m, "l2_loss", l2_loss, "total", "x");
}

}  // namespace chainrule
