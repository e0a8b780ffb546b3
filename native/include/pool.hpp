// A small persistent pool of threads. They take blocks as they come, so the body of one block must depend on no other
// block; then the results cannot depend on the number of threads.
#pragma once

#include <cstddef>

namespace chainrule {

using Task = void (*)(void* context, size_t block);

void run_blocks(size_t blocks, Task task, void* context);

template <class Body>
void parallel_for(size_t blocks, Body& body) {
    run_blocks(blocks, [](void* context, size_t block) { (*static_cast<Body*>(context))(block); }, &body);
}

}  // namespace chainrule
