// A recording of kernel calls: a training step runs once with a recorder on; later steps of the same shapes call the
// same kernels again, in the same order on the same memory, without Python. So they give the same bits.
//
// A recording must never repeat a value that depends on data. It therefore trusts nothing by default: a kernel may read
// memory that the recording was told of (parameters, inputs, constants), or memory of its own that an earlier recorded
// kernel has written. Anything else, such as the result of NumPy, breaks the recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/allocator.hpp"

namespace chainrule {

// Where the random draws of a step begin: words 0, 2 and 4 of a key (see random.py).
struct Position {
    uint64_t seed = 0, step = 0, part = 0;
};

class Recording {
public:
    Recording() : memory_(std::make_shared<Allocator>(true)) {}

    // From begin to end, arrays of this thread are made in the recording's own memory, where what one array gives back
    // serves later ones. With `records` the calls of kernels are kept too.
    void begin(const Position& position, bool records);
    void end();
    static Recording* active();     // that of this thread; null if there is none
    static Recording* recording();  // the same, if it keeps calls
    static bool replaying();        // on this thread

    void know(const void* data, size_t bytes);  // memory of others, which must outlive the recording
    bool knows(const void* data, size_t bytes) const;

    void* allocate(size_t bytes);  // null if the system refuses
    const std::shared_ptr<Allocator>& memory() const { return memory_; }

    // Checks of the memory that a kernel was called with.
    void reads(const char* kernel, const void* data, size_t bytes);
    void writes(const char* kernel, const void* data, size_t bytes);
    void draws(const char* kernel, const uint64_t* words);
    void add(std::function<void()> call);
    void fail(const std::string& reason);  // what was recorded is dropped
    const std::string& broken() const { return broken_; }

    void replay(const Position& position);  // throws what a kernel throws
    const Position& position() const { return position_; }
    size_t calls() const { return calls_.size(); }
    size_t bytes() const { return memory_->held(); }

private:
    struct Range {
        uintptr_t end;
        bool written;
    };
    using Ranges = std::map<uintptr_t, Range>;
    Ranges::iterator around(const void* data, size_t bytes);

    std::shared_ptr<Allocator> memory_;  // shared with its arrays, which may outlive the recording
    Ranges ranges_;
    std::vector<std::function<void()>> calls_;
    std::string broken_;
    Position position_;
};

}  // namespace chainrule
