#include "parallel.hpp"

#include <algorithm>
#include <vector>

#include "pool.hpp"

namespace chainrule::parallel {
namespace {

// Parameter gradients are summed per block of rows, then over the blocks; so this number is part of the result.
constexpr size_t BLOCK_ROWS = 64;

// Below this many elements waking a thread costs more than it saves.
constexpr size_t SMALL = 1 << 15;

size_t count_blocks(size_t R) {
    return (R + BLOCK_ROWS - 1) / BLOCK_ROWS;
}

template <class Body>  // body(block, first row, number of rows)
void for_row_blocks(size_t R, size_t C, Body body) {
    auto run = [&](size_t block) {
        const size_t first = block * BLOCK_ROWS;
        body(block, first, std::min(BLOCK_ROWS, R - first));
    };
    if (R * C < SMALL) {
        for (size_t block = 0; block < count_blocks(R); ++block) run(block);
    } else {
        parallel_for(count_blocks(R), run);
    }
}

// out_n += the sum of the rows of partial_bn, as a tree of pairs: a fixed order, and an error that grows with
// log(blocks).
void add_blocks(float* out_n, float* partial_bn, size_t blocks, size_t stride, size_t N) {
    for (size_t step = 1; step < blocks; step *= 2)
        for (size_t b = 0; b + step < blocks; b += 2 * step)
            for (size_t n = 0; n < N; ++n) partial_bn[b * stride + n] += partial_bn[(b + step) * stride + n];
    for (size_t n = 0; n < N && blocks > 0; ++n) out_n[n] += partial_bn[n];
}

}  // namespace

void layernorm_forward(float* y_rc, float* mean_r, float* rstd_r,
                       const float* x_rc, const float* gamma_c, const float* beta_c,
                       float eps, size_t R, size_t C) {
    const Kernels& kernels = *current_level().kernels;
    for_row_blocks(R, C, [&](size_t, size_t r, size_t rows) {
        kernels.layernorm_forward(y_rc + r * C, mean_r + r, rstd_r + r, x_rc + r * C, gamma_c, beta_c, eps, rows, C);
    });
}

void layernorm_backward(float* dx_rc, float* dgamma_c, float* dbeta_c,
                        const float* x_rc, const float* gamma_c, const float* mean_r, const float* rstd_r,
                        const float* dy_rc, size_t R, size_t C) {
    const Kernels& kernels = *current_level().kernels;
    const size_t blocks = dgamma_c ? count_blocks(R) : 0;
    std::vector<float> partial(blocks * 2 * C);  // per block: dgamma, dbeta
    for_row_blocks(R, C, [&](size_t block, size_t r, size_t rows) {
        float* dgamma = dgamma_c ? partial.data() + block * 2 * C : nullptr;
        float* dbeta = dgamma_c ? dgamma + C : nullptr;
        float* dx = dx_rc ? dx_rc + r * C : nullptr;
        kernels.layernorm_backward(dx, dgamma, dbeta, x_rc + r * C, gamma_c, mean_r + r, rstd_r + r,
                                   dy_rc + r * C, rows, C);
    });
    if (dgamma_c) {
        add_blocks(dgamma_c, partial.data(), blocks, 2 * C, C);
        add_blocks(dbeta_c, partial.data() + C, blocks, 2 * C, C);
    }
}

}  // namespace chainrule::parallel
