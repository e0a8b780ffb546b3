// A recording of kernel calls: a training step runs once with a recorder on; later steps of the same shapes call the
// same kernels again, in the same order on the same memory, without Python. So they give the same bits.
//
// A recording must never repeat a value that depends on data. It therefore trusts nothing by default: a kernel may read
// memory that the recording was told of (parameters, inputs, constants), or memory of its own of which earlier recorded
// kernels have written every byte. Anything else, such as the result of NumPy, breaks the recording. What it cannot see
// is NumPy changing in place what a kernel has written: that shows only in a comparison with the step op by op.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/allocator.hpp"

namespace chainrule {

// Where the random draws of a step begin: words 0, 2 and 4 of a key (see random.py).
struct Position {
    uint64_t seed = 0, step = 0, part = 0;
};

// A set of bytes, as intervals of addresses that neither overlap nor touch.
class Intervals {
public:
    void add(uintptr_t begin, uintptr_t end);
    void remove(uintptr_t begin, uintptr_t end);
    bool covers(uintptr_t begin, uintptr_t end) const;

private:
    std::map<uintptr_t, uintptr_t> ends_;  // by where they begin
};

class Recording {
public:
    // Recordings that are never replayed at the same time may share their memory.
    explicit Recording(std::shared_ptr<Allocator> memory = std::make_shared<Allocator>(true)) : memory_(std::move(memory)) {}

    // From begin to end, arrays of this thread are made in the recording's own memory, where what one array gives back
    // serves later ones. With `records` the calls of kernels are kept too.
    void begin(const Position& position, bool records);
    void end();
    static Recording* active();     // that of this thread; null if there is none
    static Recording* recording();  // the same, if it keeps calls
    static bool replaying();        // on this thread

    void know(const void* data, size_t bytes);  // memory of others, which must outlive the recording
    bool knows(const void* data, size_t bytes) const;
    void guard(const void* data, size_t bytes);  // memory whose first change is noted
    bool touched() const { return done_ > first_; }  // by the last replay, even if it did not come to its end

    void* allocate(size_t bytes);  // null if the system refuses
    const std::shared_ptr<Allocator>& memory() const { return memory_; }

    // Checks of the memory that a kernel was called with.
    void reads(const char* kernel, const void* data, size_t bytes);
    void writes(const char* kernel, const void* data, size_t bytes);  // all of these bytes
    void draws(const char* kernel, const uint64_t* words);
    void add(std::function<void()> call);
    void fail(const std::string& reason);  // what was recorded is dropped
    const std::string& broken() const { return broken_; }

    void replay(const Position& position);  // throws what a kernel throws
    const Position& position() const { return position_; }
    size_t calls() const { return calls_.size(); }
    size_t bytes() const { return memory_->held(); }

private:
    std::shared_ptr<Allocator> memory_;  // shared with its arrays, which may outlive the recording
    Intervals known_, written_;
    std::vector<std::function<void()>> calls_;
    std::string broken_;
    uintptr_t guarded_ = 0, guarded_end_ = 0;
    size_t first_ = SIZE_MAX, done_ = 0;  // the first call that writes there, and how many the last replay has made
    Position position_;
};

}  // namespace chainrule
