// The allocator behind runtime/memory.hpp, and that of a recording.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

namespace chainrule {

// A caching allocator. A training step requests the same sizes in the same order as the step before, so nearly every
// request finds a free block of its size. A block up to an eighth too large is used too; more would waste memory. In that of
// recordings a block may be twice as large: what one of them needs, others of smaller shapes find there. And what is
// needed briefly, for one call, comes in powers of two, from a block up to four times as large: were the sizes of all
// kernels kept, they would be more than is ever used at a time, and driven out and requested anew in each step.
class Allocator {
public:
    // One that `keeps` returns nothing to the system until it is destroyed: a recording knows its addresses.
    explicit Allocator(bool keeps = false) : keeps_(keeps) {}
    ~Allocator() { drop_all(); }
    Allocator(const Allocator&) = delete;

    void* allocate(size_t bytes, bool briefly = false) {
        if (bytes > SIZE_MAX / 2) return nullptr;  // no system has it, and rounded up it would be beyond size_t
#if defined(__SANITIZE_ADDRESS__)  // exactly the requested size, so that every access beyond it is found
        if (!keeps_) return std::malloc(bytes ? bytes : 1);
#endif
        const size_t size = briefly ? power_of_two(bytes) : round_up(std::max<size_t>(bytes, 1));
        std::lock_guard<std::mutex> lock(mutex_);
        auto found = free_.lower_bound(size);
        void* memory;
        const size_t largest = briefly ? 4 * size : keeps_ ? 2 * size : size + size / 8;
        if (found != free_.end() && found->first <= largest) {
            memory = found->second.memory;
            free_bytes_ -= found->first;
            free_.erase(found);
        } else {
            memory = fresh(size);
            if (!memory) return nullptr;
        }
        most_used_ = std::max(most_used_, held_ - free_bytes_);
        return memory;
    }

    void release(void* memory) {
#if defined(__SANITIZE_ADDRESS__)
        if (!keeps_) return std::free(memory);
#endif
        std::lock_guard<std::mutex> lock(mutex_);
        const size_t size = sizes_.at(memory);
        free_.emplace(size, Block{memory, clock_++});
        free_bytes_ += size;
        // Blocks of sizes no longer requested must not grow the memory beyond the most that was ever in use.
        while (!keeps_ && held_ > most_used_ + most_used_ / 8 && !free_.empty()) drop(oldest());
    }

    void give_back() {
        std::lock_guard<std::mutex> lock(mutex_);
        drop_all();
        most_used_ = held_;
    }

    size_t held() {
        std::lock_guard<std::mutex> lock(mutex_);
        return held_;
    }

    // A child of fork() must find the allocator unlocked and consistent.
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

private:
    static constexpr size_t LINE = 64, HUGE_PAGE = 1 << 21;

    struct Block {
        void* memory;
        uint64_t freed_at;
    };
    using Free = std::multimap<size_t, Block>;

    void* fresh(size_t size) {
        const size_t align = size >= HUGE_PAGE ? HUGE_PAGE : LINE;
        void* memory = std::aligned_alloc(align, size);
        if (!memory && !free_.empty() && !keeps_) {
            drop_all();
            memory = std::aligned_alloc(align, size);
        }
        if (!memory) return nullptr;
        if (size >= HUGE_PAGE) madvise(memory, size, MADV_HUGEPAGE);
        sizes_[memory] = size;
        held_ += size;
        return memory;
    }

    Free::iterator oldest() {
        return std::min_element(free_.begin(), free_.end(),
                                [](const auto& a, const auto& b) { return a.second.freed_at < b.second.freed_at; });
    }

    static size_t round_up(size_t bytes) {
        const size_t step = bytes >= HUGE_PAGE ? HUGE_PAGE / 16 : bytes >= 8192 ? 4096 : LINE;
        return (bytes + step - 1) / step * step;
    }

    static size_t power_of_two(size_t bytes) {
        size_t size = LINE;
        while (size < bytes) size *= 2;
        return size;
    }

    void drop(Free::iterator block) {
        held_ -= block->first;
        free_bytes_ -= block->first;
        sizes_.erase(block->second.memory);
        std::free(block->second.memory);
        free_.erase(block);
    }

    void drop_all() {
        while (!free_.empty()) drop(free_.begin());
    }

    const bool keeps_;
    std::mutex mutex_;
    Free free_;
    std::unordered_map<void*, size_t> sizes_;
    uint64_t clock_ = 0;
    size_t held_ = 0, free_bytes_ = 0, most_used_ = 0;  // bytes from the system, free ones, and the most ever in use
};

}  // namespace chainrule
