#include "runtime/pool.hpp"

#include <unistd.h>
#if defined(__linux__) && !defined(__ANDROID__)
#include <pthread.h>
#include <sched.h>
#endif

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace chainrule {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> wanted_threads{1};

// Spin on `done` for a while, longer than Python needs between two kernels of a training step: to wake a sleeping thread
// takes as long as a small kernel.
template <class Done>
bool spin(Done done) {
    static const bool alone = std::thread::hardware_concurrency() < 2;
    if (alone) return done();
    const auto end = Clock::now() + std::chrono::microseconds(200);
    do {
        for (int i = 0; i < 64; ++i) {
            if (done()) return true;
            relax();
        }
    } while (Clock::now() < end);
    return done();
}

thread_local bool inside = false;  // inside a block: nested blocks run on this thread

// How many helpers are worth calling. On a busy machine a helper that holds a block may wait for a CPU while the caller
// waits for it. So the time that jobs take is compared with the time that the caller would need alone: what it worked,
// over the mean fraction of the blocks it did. If helpers save next to nothing, half of them are left asleep for a while, longer
// each time in a row. Which thread does a block changes no result.
class Benefit {
public:
    size_t helpers(size_t wanted, Clock::time_point now) {
        if (allowed_ < wanted && now >= retry_at_) {
            allowed_ = std::max<size_t>(1, 2 * allowed_);
            forget();
        }
        return std::min(allowed_, wanted);
    }

    // A job took `taken`, of which the caller worked `working` and did this fraction of the blocks.
    void record(size_t helpers, Clock::duration taken, Clock::duration working, double fraction) {
        taken_ += taken;
        working_ += working;
        fractions_ += fraction;
        ++jobs_;
        if (taken_ < WINDOW) return;
        const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
        if (seconds(taken_) * fractions_ < WORTH * seconds(working_) * jobs_) {
            pause_ = SHORTEST;
        } else {
            allowed_ = helpers / 2;
            retry_at_ = Clock::now() + pause_;
            pause_ = std::min<Clock::duration>(2 * pause_, LONGEST);
        }
        forget();
    }

private:
    void forget() {
        taken_ = working_ = Clock::duration::zero();
        fractions_ = jobs_ = 0;
    }

    static constexpr double WORTH = 0.85;  // of the time alone; two free threads reach 0.6
    static constexpr std::chrono::milliseconds WINDOW{20}, SHORTEST{50}, LONGEST{1600};
    size_t allowed_ = SIZE_MAX;
    Clock::duration pause_{SHORTEST};
    Clock::time_point retry_at_{};
    Clock::duration taken_{}, working_{};  // of the jobs of this window
    double fractions_ = 0, jobs_ = 0;
};

class Pool {
public:
    const pid_t owner = getpid();

    // False if the caller may as well work alone: another caller uses the pool, or helpers get no CPU.
    //
    // Spinning threads synchronize through `active_` alone, since a mutex would put the second one to sleep; sleeping
    // threads are woken through `mutex_`. The atomics are sequentially consistent: of a helper that announces its sleep
    // and then checks for a job, and a caller that announces a job and then checks for sleepers, one sees the other.
    bool run(size_t blocks, Task task, void* context, size_t threads) {
        std::unique_lock<std::mutex> only_caller(busy_, std::try_to_lock);
        if (!only_caller) return false;
        const auto begin = Clock::now();
        const size_t helpers = benefit_.helpers(grow(threads - 1), begin);
        if (helpers == 0) return false;
        helpers_.store(helpers, std::memory_order_relaxed);
        task_ = task;
        context_ = context;
        blocks_ = blocks;
        next_.store(0, std::memory_order_relaxed);
        active_.fetch_and(~CLOSED);
        job_.fetch_add(1);
        if (sleeping_.load() > 0) {
            keep_apart();
            { std::lock_guard<std::mutex> lock(mutex_); }  // every helper that found no job is now waiting
            start_.notify_all();
        }
        const size_t own = take_blocks(task, context, blocks);
        const auto working = Clock::now() - begin;
        // A helper that arrives now finds the job closed: the caller does not wait for a thread that is slow to wake.
        active_.fetch_or(CLOSED);
        auto left = [this] { return active_.load() == CLOSED; };
        if (!spin(left)) {
            std::unique_lock<std::mutex> lock(mutex_);
            waiting_.store(true);
            done_.wait(lock, left);
            waiting_.store(false);
        }
        benefit_.record(helpers, Clock::now() - begin, working, static_cast<double>(own) / static_cast<double>(blocks));
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        return true;
    }

private:
    // A block that throws (out of memory) ends the job for all threads; the caller rethrows when all have stopped.
    // Returns how many blocks it did.
    size_t take_blocks(Task task, void* context, size_t blocks) {
        size_t done = 0;
        try {
            for (size_t block; (block = next_.fetch_add(1, std::memory_order_relaxed)) < blocks; ++done) task(context, block);
        } catch (...) {
            next_.store(blocks, std::memory_order_relaxed);
            std::lock_guard<std::mutex> lock(mutex_);
            failure_ = std::current_exception();
        }
        return done;
    }

    // Starts threads until there are `count`; fewer if the system refuses. They are detached and live with the process.
    size_t grow(size_t count) {
        if (threads_.size() >= count) return count;
        try {
            threads_.reserve(count);
            while (threads_.size() < count) {
                std::thread thread(&Pool::help, this, threads_.size(), job_.load(std::memory_order_relaxed));
                threads_.push_back(thread.native_handle());
                thread.detach();
            }
        } catch (const std::system_error&) {
        } catch (const std::bad_alloc&) {
        }
        forget_cpus();
        return std::min(threads_.size(), count);
    }

    // Linux tends to wake a thread on the CPU of its waker. There it would wait for milliseconds while the caller does
    // all the work. So helpers get the affinity of the caller without its current CPU, if that leaves a CPU for each. It
    // stays until a caller on another CPU wakes them: on a busy machine a helper may wait while another CPU is free.
#if defined(__linux__) && !defined(__ANDROID__)
    void keep_apart() {
        cpu_set_t others;
        const int here = sched_getcpu();
        if (here < 0 || sched_getaffinity(0, sizeof others, &others) != 0) return;
        CPU_CLR(here, &others);
        if (CPU_EQUAL(&others, &cpus_) || CPU_COUNT(&others) < static_cast<int>(threads_.size())) return;
        for (pthread_t thread : threads_) pthread_setaffinity_np(thread, sizeof others, &others);
        cpus_ = others;
    }

    void forget_cpus() { CPU_ZERO(&cpus_); }

    cpu_set_t cpus_{};  // affinity of the helpers, once it was set
#else
    void keep_apart() {}
    void forget_cpus() {}
#endif

    void help(size_t index, uint64_t seen) {
        inside = true;
        for (;;) {
            auto called = [&] { return job_.load() != seen; };
            if (!spin(called)) {
                std::unique_lock<std::mutex> lock(mutex_);
                sleeping_.fetch_add(1);
                start_.wait(lock, called);
                sleeping_.fetch_sub(1);
            }
            seen = job_.load();
            if (index >= helpers_.load(std::memory_order_relaxed)) continue;  // this job needs fewer threads
            if (!(active_.fetch_add(1) & CLOSED)) take_blocks(task_, context_, blocks_);
            if (active_.fetch_sub(1) == CLOSED + 1 && waiting_.load()) {
                std::lock_guard<std::mutex> lock(mutex_);
                done_.notify_one();
            }
        }
    }

    static constexpr uint32_t CLOSED = uint32_t(1) << 31;

    // What threads ask all the time while others write elsewhere has a cache line of its own.
    static constexpr size_t LINE = 64;

    std::mutex busy_;                             // held by the caller during a job
    alignas(LINE) std::atomic<uint64_t> job_{0};  // counts the jobs
    // Number of helpers in the job, and a flag that it is closed. The job's fields are written only while it is closed,
    // and read only by helpers that entered while it was open.
    alignas(LINE) std::atomic<uint32_t> active_{CLOSED};
    alignas(LINE) std::atomic<size_t> next_{0};  // the next block to take
    alignas(LINE) size_t blocks_ = 0;
    Task task_ = nullptr;
    void* context_ = nullptr;
    std::atomic<size_t> helpers_{0};                        // that the job needs
    std::vector<std::thread::native_handle_type> threads_;  // started so far

    std::mutex mutex_;  // for sleeping threads
    std::condition_variable start_, done_;
    std::atomic<size_t> sleeping_{0};   // helpers
    std::atomic<bool> waiting_{false};  // the caller
    std::exception_ptr failure_;
    Benefit benefit_;  // used by the caller, under busy_
};

// The pool is never destroyed: at exit its threads still sleep on it. A forked child has none of these threads, and the
// parent's locks may stay locked in it, so it makes a pool of its own.
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
