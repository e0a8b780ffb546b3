#include "ops/embedding.hpp"

#include "bind/ids.hpp"

namespace chainrule {
namespace {

void gather(Matrix y, ConstMatrix w, Ids ids) {
    const size_t N = ids.size(), V = w.shape(0), C = w.shape(1);
    float* y_nc = pointer(y, "y", N * C);
    const int64_t* id_n = id_pointer(ids, "ids", N, V);
    const float* w_vc = w.data();

    WithoutGil release;
    for_rows(N, C, [&](size_t n, size_t rows) { embedding().gather(y_nc + n * C, w_vc, id_n + n, rows, C); });
}

// Of gradients, in a block: one thread sums an element of dw in the order of the ids, whatever the blocks.
constexpr size_t COLUMNS = 128;

void scatter_add(Matrix dw, ConstMatrix dy, Ids ids) {
    const size_t N = ids.size(), V = dw.shape(0), C = dw.shape(1);
    reads_too("scatter_add_rows", dw);
    const float* dy_nc = pointer(dy, "dy", N * C);
    const int64_t* id_n = id_pointer(ids, "ids", N, V);
    float* dw_vc = dw.data();

    WithoutGil release;
    for_row_blocks(C, N, COLUMNS, [&](size_t, size_t first, size_t columns) {
        embedding().scatter_add(dw_vc, dy_nc, id_n, first, columns, N, C);
    });
}

// As many ids for each row of y, and perhaps as many weights.
using Weights = std::optional<ConstMatrix>;

void bag(Matrix y, ConstMatrix w, Ids ids, Weights weights) {
    const size_t R = y.shape(0), N = R ? ids.size() / R : 0, V = w.shape(0), C = w.shape(1);
    float* y_rc = pointer(y, "y", R * C);
    const int64_t* id_rn = id_pointer(ids, "ids", R * N, V);
    const float *w_vc = w.data(), *weight_rn = pointer_or_null(weights, "weights", R * N);

    WithoutGil release;
    for_rows(R, N * C, [&](size_t r, size_t rows) {
        embedding().bag(y_rc + r * C, w_vc, id_rn + r * N, weight_rn ? weight_rn + r * N : nullptr, rows, N, C);
    });
}

void bag_scatter_add(Matrix dw, ConstMatrix dy, Ids ids, Weights weights) {
    const size_t R = dy.shape(0), N = R ? ids.size() / R : 0, V = dw.shape(0), C = dw.shape(1);
    reads_too("scatter_add_bags", dw);
    const float *dy_rc = pointer(dy, "dy", R * C), *weight_rn = pointer_or_null(weights, "weights", R * N);
    const int64_t* id_rn = id_pointer(ids, "ids", R * N, V);
    float* dw_vc = dw.data();

    WithoutGil release;
    for_row_blocks(C, R * N, COLUMNS, [&](size_t, size_t first, size_t columns) {
        embedding().bag_scatter_add(dw_vc, dy_rc, id_rn, weight_rn, first, columns, R, N, C);
    });
}

// w[id] = row, each id once.
void put(Matrix w, ConstMatrix rows, Ids ids) {
    const size_t N = ids.size(), V = w.shape(0), C = w.shape(1);
    reads_too("put_rows", w);  // the others stay
    const float* row_nc = pointer(rows, "rows", N * C);
    const int64_t* id_n = id_pointer(ids, "ids", N, V);
    for (size_t n = 0; n < N; ++n) std::copy_n(row_nc + n * C, C, w.data() + id_n[n] * C);
}

}  // namespace

void bind_embedding(nb::module_& m) {
    def(m, "gather_rows", gather, "y", "w", "ids");
    def(m, "scatter_add_rows", scatter_add, "dw", "dy", "ids");
    def(m, "put_rows", put, "w", "rows", "ids");
    def(m, "gather_bags", bag, "y", "w", "ids", "weights");
    def(m, "scatter_add_bags", bag_scatter_add, "dw", "dy", "ids", "weights");
}

}  // namespace chainrule
