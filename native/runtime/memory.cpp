#include "runtime/memory.hpp"

#include <pthread.h>

#include <cstdlib>
#include <new>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "runtime/allocator.hpp"

namespace chainrule {
namespace {

Allocator& allocator() {  // never destroyed: arrays may outlive everything else
    static Allocator* const only = [] {
        pthread_atfork([] { allocator().lock(); }, [] { allocator().unlock(); }, [] { allocator().unlock(); });
        return new Allocator;
    }();
    return *only;
}

}  // namespace

void* allocate(size_t bytes) {
    return allocator().allocate(bytes);
}

void release(void* memory) {
    allocator().release(memory);
}

size_t held_bytes() {
    return allocator().held();
}

void give_back() {
    allocator().give_back();
#if defined(__GLIBC__)
    malloc_trim(0);  // what others have freed: the C library keeps it otherwise
#endif
}

Floats::Floats(size_t count, bool briefly)
    : data_(static_cast<float*>(allocator().allocate(count * sizeof(float), briefly))) {
    if (!data_) throw std::bad_alloc();
}

}  // namespace chainrule
