// Things that are costly to make, such as a cache: a thread borrows one and leaves it to the next.
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
        explicit Handle(FreeList& owner) : owner_(owner) {
            std::lock_guard<std::mutex> lock(owner_.mutex_);
            if (!owner_.spares_.empty()) {
                lent_ = std::move(owner_.spares_.back());
                owner_.spares_.pop_back();
            }
            if (!lent_) lent_ = std::make_unique<T>();
        }
        ~Handle() {
            std::lock_guard<std::mutex> lock(owner_.mutex_);
            owner_.spares_.push_back(std::move(lent_));
        }
        Handle(const Handle&) = delete;
        T& operator*() { return *lent_; }

    private:
        FreeList& owner_;
        std::unique_ptr<T> lent_;
    };

    const std::vector<std::unique_ptr<T>>& all() const { return spares_; }  // while none is lent

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> spares_;
};

}  // namespace chainrule
