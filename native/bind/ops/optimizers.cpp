#include "ops/optimizers.hpp"

#include "bind/kernels.hpp"

namespace chainrule {
namespace {

// A sum for each block, then these in order: the same bits for any number of threads.
double sum_of_squares(ConstVector x) {
    const size_t n = x.size();
    const float* x_n = x.data();
    WithoutGil release;
    std::vector<double> sums((n + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS);
    for_row_blocks(n, 1, BLOCK_ELEMENTS, [&](size_t block, size_t i, size_t count) {
        sums[block] = optimizers().sum_of_squares(x_n + i, count);
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    return total;
}

}  // namespace

void bind_optimizers(nb::module_& m) {
    bind_elements(m, "sgd_step", optimizers, &Optimizers::sgd, "w", "g", "scale", "decay", "lr");
    bind_elements(m, "momentum_step", optimizers, &Optimizers::momentum, "w", "v", "g", "scale", "decay", "momentum",
                  "inside", "outside", "nesterov");
    bind_elements(m, "rms_step", optimizers, &Optimizers::rms, "w", "v", "g", "scale", "keep", "add",
                  "eps_inside", "eps_outside", "lr");
    bind_elements(m, "adam_step", optimizers, &Optimizers::adam, "w", "m", "v", "g", "scale", "keep_m", "add_m",
                  "keep_v", "add_v", "bias", "eps_inside", "eps_outside", "lr", "shrink");
    bind_elements(m, "lion_step", optimizers, &Optimizers::lion, "w", "m", "g", "scale", "keep_move", "add_move",
                  "keep_m", "add_m", "lr", "shrink");
    bind_elements(m, "scale", optimizers, &Optimizers::scale, "x", "factor");
    def(m, "sum_of_squares", sum_of_squares, "x");
}

}  // namespace chainrule
