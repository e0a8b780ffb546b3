// Memory for arrays and scratch: 64-byte aligned, in huge pages where possible, and kept for the next step instead of
// returned to the system, since the first touch of a fresh page costs more than most kernels.
#pragma once

#include <cstddef>

namespace chainrule {

void* allocate(size_t bytes);  // null if the system refuses
void release(void* memory);
size_t held_bytes();           // obtained from the system: in use and free
void give_back();              // return the free blocks to the system, and what malloc holds

// Memory of floats.
class Floats {
public:
    explicit Floats(size_t count) : Floats(count, false) {}  // throws std::bad_alloc
    ~Floats() { release(data_); }
    Floats(const Floats&) = delete;
    Floats& operator=(const Floats&) = delete;
    float* data() const { return data_; }

protected:
    Floats(size_t count, bool briefly);

private:
    float* data_;
};

// The same for one call of a kernel.
class Scratch : public Floats {
public:
    explicit Scratch(size_t count) : Floats(count, true) {}
};

}  // namespace chainrule
