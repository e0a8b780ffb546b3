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

void bag(float* y_rc, const float* w_vc, const int64_t* id_rn, const float* weight_rn, size_t R, size_t N, size_t C) {
    for (size_t r = 0; r < R; ++r) {
        const int64_t* id_n = id_rn + r * N;
        const float* weight_n = weight_rn ? weight_rn + r * N : nullptr;
        each_vector(C, [=](size_t c, auto left) {
            Vec total = fill(0);
            for (size_t j = 0; j < N; ++j) {
                const float weight = weight_n ? weight_n[j] : 1.0f;
                if (weight != 0) total = total + load_next(w_vc + id_n[j] * C + c, left) * fill(weight);
            }
            store_next(y_rc + r * C + c, total, left);  // [IX.7]
        });
    }
}

void bag_scatter_add(float* dw_vc, const float* dy_rc, const int64_t* id_rn, const float* weight_rn, size_t first,
                     size_t columns, size_t R, size_t N, size_t C) {
    for (size_t r = 0; r < R; ++r)
        for (size_t j = 0; j < N; ++j) {  // forward was: y[r] = Σ_j weight[r, j] w[id[r, j]]                     [IX.8]
            const float weight = weight_rn ? weight_rn[r * N + j] : 1.0f;
            if (weight == 0) continue;
            float* dw = dw_vc + id_rn[r * N + j] * C + first;
            const float* dy = dy_rc + r * C + first;
            each_vector(columns, [=](size_t c, auto left) {
                store_next(dw + c, load_next(dw + c, left) + load_next(dy + c, left) * fill(weight), left);
            });
        }
}

}  // namespace

const Embedding embedding = {gather, scatter_add, bag, bag_scatter_add};

}  // namespace chainrule::CHAINRULE_ISA
