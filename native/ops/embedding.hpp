#pragma once

#include <stdint.h>

#include "runtime/isa.hpp"

namespace chainrule {

struct Embedding {
    // y_nc[n] = w_vc[id_n[n]]
    void (*gather)(float* y_nc, const float* w_vc, const int64_t* id_n, size_t N, size_t C);

    // dw_vc[id_n[n]] += dy_nc[n] in the order of n, for `columns` columns from `first` on.
    void (*scatter_add)(float* dw_vc, const float* dy_nc, const int64_t* id_n, size_t first, size_t columns, size_t N,
                        size_t C);

    // y_rc[r] = Σ_j weight_rn[r, j] w_vc[id_rn[r, j]]; what weighs 0 is not read. Without weights, null, all weigh 1.
    void (*bag)(float* y_rc, const float* w_vc, const int64_t* id_rn, const float* weight_rn, size_t R, size_t N, size_t C);

    // dw_vc[id_rn[r, j]] += weight_rn[r, j] dy_rc[r] in the order of r and j, for `columns` columns from `first` on.
    void (*bag_scatter_add)(float* dw_vc, const float* dy_rc, const int64_t* id_rn, const float* weight_rn, size_t first,
                            size_t columns, size_t R, size_t N, size_t C);
};
CHAINRULE_KERNELS(Embedding, embedding)

}  // namespace chainrule
