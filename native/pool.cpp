#include "pool.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace chainrule {
namespace {

std::atomic<int> wanted_threads{1};

// Poll `done` for a while, longer than Python needs between two kernels of a training step: waking a thread that sleeps
// takes as long as a small kernel.
template <class Done>
bool spin(Done done) {
    static const bool alone = std::thread::hardware_concurrency() < 2;
    if (alone) return done();
    const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    do {
        for (int i = 0; i < 64; ++i) {
            if (done()) return true;
            relax();
        }
    } while (std::chrono::steady_clock::now() < end);
    return done();
}

thread_local bool inside = false;  // a block: if it starts blocks of its own, this thread runs them

class Pool {
public:
    const pid_t owner = getpid();

    // False if another caller holds the pool; that caller's threads are busy, so nothing is lost by working alone.
    bool run(size_t blocks, Task task, void* context, size_t threads) {
        std::unique_lock<std::mutex> only_caller(busy_, std::try_to_lock);
        if (!only_caller) return false;
        bool sleepers;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            helpers_ = grow(threads - 1);
            task_ = task;
            context_ = context;
            blocks_ = blocks;
            next_.store(0, std::memory_order_relaxed);
            open_ = true;
            job_.fetch_add(1, std::memory_order_release);
            sleepers = sleeping_ > 0;
        }
        if (sleepers) start_.notify_all();
        take_blocks(task, context, blocks);
        // A helper that has not come by now finds the job closed: nobody waits for a thread that is slow to wake.
        {
            std::lock_guard<std::mutex> lock(mutex_);
            open_ = false;
        }
        if (!spin([this] { return running_.load(std::memory_order_acquire) == 0; })) {
            std::unique_lock<std::mutex> lock(mutex_);
            done_.wait(lock, [this] { return running_.load(std::memory_order_acquire) == 0; });
        }
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        return true;
    }

private:
    // A block that throws (no memory) ends the job, for all threads; the caller throws it again when all have stopped.
    void take_blocks(Task task, void* context, size_t blocks) {
        try {
            for (size_t block; (block = next_.fetch_add(1, std::memory_order_relaxed)) < blocks;) task(context, block);
        } catch (...) {
            next_.store(blocks, std::memory_order_relaxed);
            std::lock_guard<std::mutex> lock(mutex_);
            failure_ = std::current_exception();
        }
    }

    // Start threads until there are `count`; fewer if the system refuses. Detached, they live as long as the process.
    size_t grow(size_t count) {
        try {
            for (; threads_ < count; ++threads_)
                std::thread(&Pool::help, this, threads_, job_.load(std::memory_order_relaxed)).detach();
        } catch (const std::system_error&) {
        }
        return std::min(threads_, count);
    }

    void help(size_t index, uint64_t seen) {
        inside = true;
        for (;;) {
            auto called = [&] { return job_.load(std::memory_order_acquire) != seen; };
            const bool soon = spin(called);
            std::unique_lock<std::mutex> lock(mutex_);
            if (!soon) {
                ++sleeping_;
                start_.wait(lock, called);
                --sleeping_;
            }
            seen = job_.load(std::memory_order_relaxed);
            if (!open_ || index >= helpers_) continue;  // over already, or wants fewer threads
            running_.fetch_add(1, std::memory_order_relaxed);
            const Task task = task_;
            void* const context = context_;
            const size_t blocks = blocks_;
            lock.unlock();
            take_blocks(task, context, blocks);
            lock.lock();
            if (running_.fetch_sub(1, std::memory_order_release) == 1) done_.notify_one();
        }
    }

    std::mutex busy_;   // held by the caller for a whole job
    std::mutex mutex_;  // guards what follows; the atomics are also polled without it
    std::condition_variable start_, done_;
    std::atomic<uint64_t> job_{0};
    std::atomic<size_t> running_{0};  // helpers at work
    std::atomic<size_t> next_{0};     // the next block to take
    std::exception_ptr failure_;
    bool open_ = false;
    size_t threads_ = 0, helpers_ = 0, sleeping_ = 0;
    size_t blocks_ = 0;
    Task task_ = nullptr;
    void* context_ = nullptr;
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
    if (threads > 1 && !inside) {
        struct Inside {
            Inside() { inside = true; }
            ~Inside() { inside = false; }
        } mark;
        if (pool().run(blocks, task, context, threads)) return;
    }
    for (size_t block = 0; block < blocks; ++block) task(context, block);
}

void set_threads(int count) {
    wanted_threads = count;
}

int get_threads() {
    return wanted_threads;
}

void add_blocks(float* out_n, float* partial_bn, size_t blocks, size_t stride, size_t N) {
    for (size_t step = 1; step < blocks; step *= 2)
        for (size_t b = 0; b + step < blocks; b += 2 * step)
            for (size_t n = 0; n < N; ++n) partial_bn[b * stride + n] += partial_bn[(b + step) * stride + n];
    for (size_t n = 0; n < N && blocks > 0; ++n) out_n[n] += partial_bn[n];
}

}  // namespace chainrule
