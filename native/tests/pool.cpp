// The pool and the memory store under load from several callers; run by `make sanitize` under ThreadSanitizer.
#include "runtime/pool.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "runtime/memory.hpp"

using namespace chainrule;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "pool test failed: %s\n", what);
    std::exit(1);
}

// Every block is done exactly once, and what it wrote is seen by the caller.
void one_job(size_t blocks) {
    std::vector<int> done(blocks, 0);
    parallel_for(blocks, [&](size_t block) {
        const Scratch scratch(100 + block % 7);
        scratch.data()[0] = 1;
        done[block] += static_cast<int>(scratch.data()[0]);
    });
    for (int count : done) require(count == 1, "a block was not done exactly once");
}

void many_jobs() {
    for (size_t job = 0; job < 300; ++job) one_job(job % 40);
}

void nested_jobs() {
    std::vector<int> done(64, 0);
    parallel_for(8, [&](size_t outer) { parallel_for(8, [&](size_t inner) { done[outer * 8 + inner] += 1; }); });
    for (int count : done) require(count == 1, "a nested block was not done exactly once");
}

// Helpers that went to sleep are woken, and a caller whose helper is slow waits for it, awake and then asleep.
void jobs_after_pauses() {
    for (size_t job = 0; job < 200; ++job) {
        std::this_thread::sleep_for(std::chrono::microseconds(job % 2 ? 500 : 150));
        one_job(20);
    }
    const auto caller = std::this_thread::get_id();
    for (size_t job = 0; job < 20; ++job) {
        std::vector<int> done(40, 0);
        parallel_for(40, [&](size_t block) {
            if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            done[block] += 1;
        });
        for (int count : done) require(count == 1, "the caller went on before its helper");
    }
}

// A block that throws ends its job; the caller sees the exception and the pool goes on.
void failing_job() {
    bool seen = false;
    try {
        parallel_for(50, [&](size_t block) {
            if (block % 10 == 3) throw std::bad_alloc();
        });
    } catch (const std::bad_alloc&) {
        seen = true;
    }
    require(seen, "an exception was lost");
    one_job(20);
}

// How many of the blocks of `jobs` jobs helpers did, each of which then slept for a while.
size_t helped(size_t jobs, std::chrono::microseconds sleep) {
    const auto caller = std::this_thread::get_id();
    std::atomic<size_t> count{0};
    for (size_t job = 0; job < jobs; ++job)
        parallel_for(8, [&](size_t) {
            if (std::this_thread::get_id() == caller) {
                const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
                while (std::chrono::steady_clock::now() < end) relax();
            } else {
                count.fetch_add(1);
                std::this_thread::sleep_for(sleep);
            }
        });
    return count;
}

// A helper that gets no CPU while it holds a block is left out, and called again when it might help.
void slow_helpers_are_left_out() {
    set_threads(2);
    require(helped(2000, std::chrono::milliseconds(5)) < 100, "a helper that only delays was called again and again");
    size_t tries = 0;
    while (helped(1, std::chrono::microseconds(0)) == 0) {
        require(++tries < 5000, "a helper was never called again");
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
}

}  // namespace

int main() {
    for (int threads : {1, 2, 3, 8, 2}) {
        set_threads(threads);
        many_jobs();
        nested_jobs();
        jobs_after_pauses();
        for (int i = 0; i < 50; ++i) failing_job();
    }
    slow_helpers_are_left_out();
    std::vector<std::thread> callers;  // only one of them gets the pool, the others work alone
    for (int i = 0; i < 4; ++i) callers.emplace_back(many_jobs);
    for (std::thread& caller : callers) caller.join();

    give_back();
    require(held_bytes() == 0, "memory was lost");
    std::puts("pool: well");
}
