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

// In blocks of columns: one thread sums an element of dw in the order of the ids, whatever the blocks.
void scatter_add(Matrix dw, ConstMatrix dy, Ids ids) {
    constexpr size_t COLUMNS = 128;
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

}  // namespace

void bind_embedding(nb::module_& m) {
    def(m, "gather_rows", gather, "y", "w", "ids");
    def(m, "scatter_add_rows", scatter_add, "dw", "dy", "ids");
}

}  // namespace chainrule
