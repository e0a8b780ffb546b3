#include "runtime/recording.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace chainrule {
namespace {

thread_local Recording* active_here = nullptr;
thread_local bool records_here = false, replays_here = false;

uintptr_t address(const void* data) {
    return reinterpret_cast<uintptr_t>(data);
}

}  // namespace

void Intervals::add(uintptr_t begin, uintptr_t end) {
    if (covers(begin, end)) return;
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) begin = (--next)->first;
    for (; next != ends_.end() && next->first <= end; next = ends_.erase(next)) end = std::max(end, next->second);
    ends_[begin] = end;
}

void Intervals::remove(uintptr_t begin, uintptr_t end) {
    if (begin == end) return;
    auto next = ends_.lower_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second > begin) {
        const auto before = std::prev(next);
        if (before->second > end) ends_[end] = before->second;
        before->second = begin;
        next = ends_.lower_bound(begin);
    }
    while (next != ends_.end() && next->first < end) {
        const uintptr_t last = next->second;
        next = ends_.erase(next);
        if (last > end) ends_[end] = last;
    }
}

bool Intervals::covers(uintptr_t begin, uintptr_t end) const {
    const auto next = ends_.upper_bound(begin);
    return begin == end || (next != ends_.begin() && std::prev(next)->second >= end);
}

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

void Recording::know(const void* data, size_t bytes) {
    if (knows(data, bytes)) return;
    known_.add(address(data), address(data) + bytes);
    written_.add(address(data), address(data) + bytes);
}

bool Recording::knows(const void* data, size_t bytes) const {
    return known_.covers(address(data), address(data) + bytes);
}

void Recording::guard(const void* data, size_t bytes) {
    guarded_ = address(data), guarded_end_ = guarded_ + bytes;
}

void* Recording::allocate(size_t bytes) {
    void* data = memory_->allocate(bytes);
    if (data && records_here) {
        known_.add(address(data), address(data) + bytes);
        written_.remove(address(data), address(data) + bytes);
    }
    return data;
}

void Recording::reads(const char* kernel, const void* data, size_t bytes) {
    if (!broken_.empty()) return;
    if (!knows(data, bytes))
        fail(std::string(kernel) + " reads an array that no kernel made");
    else if (!written_.covers(address(data), address(data) + bytes))
        fail(std::string(kernel) + " reads what no kernel has written");
}

void Recording::writes(const char* kernel, const void* data, size_t bytes) {
    if (!broken_.empty()) return;
    if (address(data) < guarded_end_ && guarded_ < address(data) + bytes) first_ = std::min(first_, calls_.size());
    if (!knows(data, bytes))
        fail(std::string(kernel) + " writes to an array that is not the recording's");
    else
        written_.add(address(data), address(data) + bytes);
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
    for (done_ = 0; done_ < calls_.size(); ++done_) calls_[done_]();
}

}  // namespace chainrule
