#include "ops/optimizers.hpp"

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

// step(count, pointers to a piece of each array), for all pieces
template <class Step, class... Pointers>
void in_pieces(size_t n, Step step, Pointers... arrays) {
    WithoutGil release;
    for_elements(n, [&](size_t i, size_t count) { step(count, arrays + i...); });
}

void sgd(Vector w, ConstVector g, float decay, float lr) {
    const size_t n = w.size();
    in_pieces(
        n, [=](size_t count, float* w, const float* g) { optimizers().sgd(w, g, decay, lr, count); }, w.data(),
        pointer(g, "g", n));
}

void momentum(Vector w, Vector v, ConstVector g, float decay, float momentum, float inside, float outside,
              bool nesterov) {
    const size_t n = w.size();
    in_pieces(
        n,
        [=](size_t count, float* w, float* v, const float* g) {
            optimizers().momentum(w, v, g, decay, momentum, inside, outside, nesterov, count);
        },
        w.data(), pointer(v, "v", n), pointer(g, "g", n));
}

void rms(Vector w, Vector v, ConstVector g, float keep, float add, float eps_inside, float eps_outside, float lr) {
    const size_t n = w.size();
    in_pieces(
        n,
        [=](size_t count, float* w, float* v, const float* g) {
            optimizers().rms(w, v, g, keep, add, eps_inside, eps_outside, lr, count);
        },
        w.data(), pointer(v, "v", n), pointer(g, "g", n));
}

void adam(Vector w, Vector m, Vector v, ConstVector g, float keep_m, float add_m, float keep_v, float add_v, float bias,
          float eps_inside, float eps_outside, float lr, float shrink) {
    const size_t n = w.size();
    in_pieces(
        n,
        [=](size_t count, float* w, float* m, float* v, const float* g) {
            optimizers().adam(w, m, v, g, keep_m, add_m, keep_v, add_v, bias, eps_inside, eps_outside, lr, shrink,
                              count);
        },
        w.data(), pointer(m, "m", n), pointer(v, "v", n), pointer(g, "g", n));
}

void lion(Vector w, Vector m, ConstVector g, float keep_move, float add_move, float keep_m, float add_m, float lr,
          float shrink) {
    const size_t n = w.size();
    in_pieces(
        n,
        [=](size_t count, float* w, float* m, const float* g) {
            optimizers().lion(w, m, g, keep_move, add_move, keep_m, add_m, lr, shrink, count);
        },
        w.data(), pointer(m, "m", n), pointer(g, "g", n));
}

double sum_of_squares(ConstVector x) {
    const size_t n = x.size();
    const float* x_n = x.data();
    WithoutGil release;
    std::vector<double> sums((n + PIECE - 1) / PIECE);
    for_row_blocks(n, 1, PIECE, [&](size_t block, size_t i, size_t count) {
        sums[block] = optimizers().sum_of_squares(x_n + i, count);
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    return total;
}

void scale(Vector x, float factor) {
    float* x_n = x.data();
    WithoutGil release;
    for_elements(x.size(), [&](size_t i, size_t count) { optimizers().scale(x_n + i, factor, count); });
}

void zero(Vector x) {
    float* x_n = x.data();
    WithoutGil release;
    for_elements(x.size(), [&](size_t i, size_t count) { std::fill_n(x_n + i, count, 0.0f); });
}

}  // namespace

void bind_optimizers(nb::module_& m) {
    m.def("sgd_step", &sgd, "w"_a.noconvert(), "g"_a.noconvert(), "decay"_a, "lr"_a);
    m.def("momentum_step", &momentum, "w"_a.noconvert(), "v"_a.noconvert(), "g"_a.noconvert(), "decay"_a,
          "momentum"_a, "inside"_a, "outside"_a, "nesterov"_a);
    m.def("rms_step", &rms, "w"_a.noconvert(), "v"_a.noconvert(), "g"_a.noconvert(), "keep"_a, "add"_a,
          "eps_inside"_a, "eps_outside"_a, "lr"_a);
    m.def("adam_step", &adam, "w"_a.noconvert(), "m"_a.noconvert(), "v"_a.noconvert(), "g"_a.noconvert(), "keep_m"_a,
          "add_m"_a, "keep_v"_a, "add_v"_a, "bias"_a, "eps_inside"_a, "eps_outside"_a, "lr"_a, "shrink"_a);
    m.def("lion_step", &lion, "w"_a.noconvert(), "m"_a.noconvert(), "g"_a.noconvert(), "keep_move"_a, "add_move"_a,
          "keep_m"_a, "add_m"_a, "lr"_a, "shrink"_a);
    m.def("sum_of_squares", &sum_of_squares, "x"_a.noconvert());
    m.def("scale", &scale, "x"_a.noconvert(), "factor"_a);
    m.def("zero", &zero, "x"_a.noconvert());
}

}  // namespace chainrule
