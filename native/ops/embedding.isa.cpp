// Rows of a table, and their gradients back into it.        Derivation: docs/derivations/indexing.md
#include "ops/embedding.hpp"

#include "simd/map.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

constexpr size_t AHEAD = 4;  // rows to prefetch before they are added to

void gather(float* y_nc, const float* w_vc, const int64_t* id_n, size_t N, size_t C) {
    for (size_t n = 0; n < N; ++n) __builtin_memcpy(y_nc + n * C, w_vc + id_n[n] * C, C * sizeof(float));
}

void scatter_add(float* dw_vc, const float* dy_nc, const int64_t* id_n, size_t first, size_t columns, size_t N,
                 size_t C) {
    for (size_t n = 0; n < N; ++n) {  // forward was: y[n] = w[id[n]]                                             [IX.4]
        float* dw = dw_vc + id_n[n] * C + first;
        const float* dy = dy_nc + n * C + first;
        const float* next = dw_vc + id_n[n + AHEAD < N ? n + AHEAD : n] * C + first;  // rows in no order, mostly in memory
        each_vector(columns, [=](size_t c, auto left) {
            __builtin_prefetch(next + c, 1);
            store_next(dw + c, load_next(dw + c, left) + load_next(dy + c, left), left);
        });
    }
}

}  // namespace

const Embedding embedding = {gather, scatter_add};

}  // namespace chainrule::CHAINRULE_ISA
