// Sums over rows with the same bits for any number of threads: a partial sum per 64 rows, then a tree over these.
#pragma once

#include <initializer_list>

#include "runtime/memory.hpp"
#include "runtime/pool.hpp"

namespace chainrule {

// body(partial, first row, number of rows) adds to partial (totals, N); each of `totals` (N,) += its row of the sum. If
// the totals are null, partial is null too, and body only does its other work. Rows have C elements.
template <class Body>
void add_row_sums(std::initializer_list<float*> totals, size_t N, size_t R, size_t C, Body&& body) {
    constexpr size_t ROWS = 64;
    const bool wanted = *totals.begin() != nullptr;
    const size_t width = totals.size() * N, blocks = (R + ROWS - 1) / ROWS;
    const Scratch partial(wanted ? blocks * width : 0);
    for_row_blocks(R, C, ROWS, [&](size_t block, size_t r, size_t rows) {
        float* const own = wanted ? partial.data() + block * width : nullptr;
        if (wanted) std::fill_n(own, width, 0.0f);
        body(own, r, rows);
    });
    if (!wanted) return;
    float* part = partial.data();
    for (float* total_n : totals) {
        add_blocks(total_n, part, blocks, width, N);
        part += N;
    }
}

}  // namespace chainrule
