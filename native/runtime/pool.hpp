// One thread pool runs every kernel. Threads take blocks in any order, so a block must not depend on another one; then
// the results do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace chainrule {

void set_threads(int count);
int get_threads();

inline void relax() {  // in a spin loop
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

using Task = void (*)(void* context, size_t block);
void run_blocks(size_t blocks, Task task, void* context);

template <class Body>  // body(block)
void parallel_for(size_t blocks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_blocks(blocks, [](void* context, size_t block) { (*static_cast<Plain*>(context))(block); }, (void*)&body);
}

// Below this many elements waking a thread costs more than it saves.
constexpr size_t SMALL = 1 << 14;

// body(block, first row, number of rows). Sums over rows are made per block and then over the blocks, so `rows` is part
// of the result and must not depend on the machine.
template <class Body>
void for_row_blocks(size_t R, size_t C, size_t rows, Body&& body) {
    auto run = [&](size_t block) { body(block, block * rows, std::min(rows, R - block * rows)); };
    const size_t blocks = (R + rows - 1) / rows;
    if (R * C < SMALL)
        for (size_t block = 0; block < blocks; ++block) run(block);
    else
        parallel_for(blocks, run);
}

// Elements in a block where its size does not affect the result: worth a thread, and small enough for the cache.
constexpr size_t BLOCK_ELEMENTS = 1 << 14;

// body(first, count) over n independent elements.
template <class Body>
void for_elements(size_t n, Body&& body) {
    for_row_blocks(n, 1, BLOCK_ELEMENTS, [&](size_t, size_t first, size_t count) { body(first, count); });
}

// body(first row, number of rows) over independent rows of C elements.
template <class Body>
void for_rows(size_t R, size_t C, Body&& body) {
    const size_t rows = std::max<size_t>(1, BLOCK_ELEMENTS / std::max<size_t>(1, C));
    for_row_blocks(R, C, rows, [&](size_t, size_t first, size_t count) { body(first, count); });
}

// out_n += the sum of the rows of partial_bn (rows `stride` apart) as a pairwise tree: a fixed order, and an error that
// grows with log(blocks). partial_bn is overwritten.
void add_blocks(float* out_n, float* partial_bn, size_t blocks, size_t stride, size_t N);

}  // namespace chainrule
