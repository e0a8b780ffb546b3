// Memory for arrays and scratch: 64-byte aligned, in huge pages where possible, and kept for the next step instead of
// returned to the system, since the first touch of a fresh page costs more than most kernels.
#pragma once

#include <cstddef>

namespace chainrule {

void* allocate(size_t bytes);  // null if the system refuses
void release(void* memory);
size_t held_bytes();           // obtained from the system: in use and free
void give_back();              // return the free blocks to the system, and what malloc holds

// Scratch memory of floats for one call.
class Scratch {
public:
    explicit Scratch(size_t floats);  // throws std::bad_alloc
    ~Scratch() { release(data_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    float* data() const { return data_; }

private:
    float* data_;
};

}  // namespace chainrule
