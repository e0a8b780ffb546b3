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
};
CHAINRULE_KERNELS(Embedding, embedding)

}  // namespace chainrule
