#include "pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>

#include "parallel.hpp"

namespace chainrule {
namespace {

std::atomic<int> wanted_threads{1};

class Pool {
public:
    const pid_t owner = getpid();

    // False if another caller holds the pool; that caller's threads are busy, so nothing is lost by working alone.
    bool run(size_t blocks, Task task, void* context, size_t threads) {
        std::unique_lock<std::mutex> only_caller(busy_, std::try_to_lock);
        if (!only_caller) return false;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            helpers_ = running_ = grow(threads - 1);
            task_ = task;
            context_ = context;
            blocks_ = blocks;
            next_ = 0;
            ++job_;
        }
        start_.notify_all();
        take_blocks();
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return running_ == 0; });
        return true;
    }

private:
    void take_blocks() {
        for (size_t block; (block = next_.fetch_add(1, std::memory_order_relaxed)) < blocks_;) task_(context_, block);
    }

    // Start threads until there are `count`; fewer if the system refuses. Detached, they live as long as the process.
    size_t grow(size_t count) {
        try {
            for (; threads_ < count; ++threads_) std::thread(&Pool::help, this, threads_, job_).detach();
        } catch (const std::system_error&) {
        }
        return std::min(threads_, count);
    }

    void help(size_t index, uint64_t seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            start_.wait(lock, [&] { return job_ != seen; });
            seen = job_;
            if (index >= helpers_) continue;  // this job wants fewer threads
            lock.unlock();
            take_blocks();
            lock.lock();
            if (--running_ == 0) done_.notify_one();
        }
    }

    std::mutex busy_;   // held by the caller for a whole job
    std::mutex mutex_;  // guards what follows, except next_
    std::condition_variable start_, done_;
    uint64_t job_ = 0;
    size_t threads_ = 0, helpers_ = 0, running_ = 0;
    size_t blocks_ = 0;
    Task task_ = nullptr;
    void* context_ = nullptr;
    std::atomic<size_t> next_{0};
};

// The pool is never destroyed: at exit its threads sleep on it. A forked child has none of the parent's threads, and
// the parent's locks may be held for ever there, so it leaves the parent's pool alone and makes its own.
Pool& pool() {
    static std::atomic<Pool*> current{nullptr};
    Pool* found = current.load();
    while (!found || found->owner != getpid()) {
        Pool* fresh = new Pool;
        if (current.compare_exchange_strong(found, fresh)) return *fresh;
        delete fresh;
    }
    return *found;
}

}  // namespace

void run_blocks(size_t blocks, Task task, void* context) {
    const size_t threads = std::min(blocks, static_cast<size_t>(get_threads()));
    if (threads > 1 && pool().run(blocks, task, context, threads)) return;
    for (size_t block = 0; block < blocks; ++block) task(context, block);
}

void set_threads(int count) {
    wanted_threads = count;
}

int get_threads() {
    return wanted_threads;
}

}  // namespace chainrule
