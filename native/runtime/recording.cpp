#include "runtime/recording.hpp"

#include <stdexcept>

namespace chainrule {
namespace {

thread_local Recording* active_here = nullptr;
thread_local bool records_here = false, replays_here = false;

uintptr_t address(const void* data) {
    return reinterpret_cast<uintptr_t>(data);
}

}  // namespace

Recording* Recording::active() {
    return active_here;
}

Recording* Recording::recording() {
    return records_here ? active_here : nullptr;
}

bool Recording::replaying() {
    return replays_here;
}

void Recording::begin(const Position& position, bool records) {
    if (active_here) throw std::logic_error("a recording is active already on this thread");
    position_ = position;
    active_here = this, records_here = records;
}

void Recording::end() {
    active_here = nullptr, records_here = false;
}

Recording::Ranges::iterator Recording::around(const void* data, size_t bytes) {
    auto found = ranges_.upper_bound(address(data));
    if (found == ranges_.begin()) return ranges_.end();
    --found;
    return address(data) + bytes <= found->second.end ? found : ranges_.end();
}

void Recording::know(const void* data, size_t bytes) {
    if (bytes && around(data, bytes) == ranges_.end()) ranges_[address(data)] = {address(data) + bytes, true};
}

bool Recording::knows(const void* data, size_t bytes) const {
    auto* self = const_cast<Recording*>(this);
    return self->around(data, bytes) != self->ranges_.end();
}

void* Recording::allocate(size_t bytes) {
    void* data = memory_->allocate(bytes);
    if (data && records_here) ranges_[address(data)] = {address(data) + bytes, false};
    return data;
}

void Recording::reads(const char* kernel, const void* data, size_t bytes) {
    if (!bytes || !broken_.empty()) return;
    const auto range = around(data, bytes);
    if (range == ranges_.end())
        fail(std::string(kernel) + " reads an array that no kernel made");
    else if (!range->second.written)
        fail(std::string(kernel) + " reads what no kernel has written");
}

void Recording::writes(const char* kernel, const void* data, size_t bytes) {
    if (!bytes || !broken_.empty()) return;
    const auto range = around(data, bytes);
    if (range == ranges_.end())
        fail(std::string(kernel) + " writes to an array that is not the recording's");
    else
        range->second.written = true;
}

void Recording::draws(const char* kernel, const uint64_t* words) {
    if (words[0] != position_.seed || words[2] != position_.step || words[4] != position_.part)
        fail(std::string(kernel) + " draws from a stream that is not of this step");
}

void Recording::add(std::function<void()> call) {
    if (broken_.empty()) calls_.push_back(std::move(call));
}

void Recording::fail(const std::string& reason) {
    if (broken_.empty()) broken_ = reason;
    calls_.clear();
}

void Recording::replay(const Position& position) {
    if (!broken_.empty()) throw std::logic_error("the recording is broken: " + broken_);
    position_ = position;
    replays_here = true;
    struct Reset {
        ~Reset() { replays_here = false; }
    } reset;
    for (const auto& call : calls_) call();
}

}  // namespace chainrule
