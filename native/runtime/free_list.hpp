// A free list of objects that are costly to make, such as caches. A handle takes one, or makes one if the list is empty,
// and puts it back when it goes out of scope.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace chainrule {

template <class T>
class FreeList {
public:
    class Handle {
    public:
        explicit Handle(FreeList& list) : list_(list) {
            std::lock_guard<std::mutex> lock(list_.mutex_);
            if (!list_.free_.empty()) {
                object_ = std::move(list_.free_.back());
                list_.free_.pop_back();
            }
            if (!object_) object_ = std::make_unique<T>();
        }
        ~Handle() {
            std::lock_guard<std::mutex> lock(list_.mutex_);
            list_.free_.push_back(std::move(object_));
        }
        Handle(const Handle&) = delete;
        T& operator*() { return *object_; }

    private:
        FreeList& list_;
        std::unique_ptr<T> object_;
    };

    const std::vector<std::unique_ptr<T>>& all() const { return free_; }  // complete only while no handle exists

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> free_;
};

}  // namespace chainrule
