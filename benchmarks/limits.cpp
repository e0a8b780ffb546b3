// What the machine can do at best: fused multiply-adds per second, and bytes read from memory.
//     limits THREADS   ->   {"gflops": ..., "read_gb_s": ..., "copy_gb_s": ...}
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#if defined(__AVX512F__)
constexpr int LANES = 16;
#else
constexpr int LANES = 8;
#endif
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));

template <class Body>
double seconds(int threads, Body body) {  // the best of five
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
        const auto began = std::chrono::steady_clock::now();
        std::vector<std::thread> pool;
        for (int t = 0; t < threads; ++t) pool.emplace_back(body, t);
        for (auto& thread : pool) thread.join();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
        if (took.count() < best) best = took.count();
    }
    return best;
}

volatile float sink;

int main(int, char** arguments) {
    const int threads = std::atoi(arguments[1]);
    constexpr long STEPS = 20'000'000, CHAINS = 12;
    const double fma = seconds(threads, [](int t) {
        Lanes c[CHAINS], a, b;
        for (int i = 0; i < LANES; ++i) a[i] = 0.999f, b[i] = 1e-3f;
        for (int j = 0; j < CHAINS; ++j) c[j] = a * float(t + j);
        for (long n = 0; n < STEPS; ++n)
#pragma GCC unroll 12
            for (int j = 0; j < CHAINS; ++j) c[j] = c[j] * a + b;
        for (int j = 0; j < CHAINS; ++j) sink = sink + c[j][0];
    });

    const size_t count = size_t(64) << 20;  // 256 MB for each thread
    std::vector<std::vector<float>> from(threads, std::vector<float>(count, 1.0f)), to = from;
    const double read = seconds(threads, [&](int t) {
        Lanes total[8] = {};
        const Lanes* x = reinterpret_cast<const Lanes*>((reinterpret_cast<size_t>(from[t].data()) + 63) & ~size_t(63));
        for (size_t i = 0; i + 16 < count / LANES; i += 8)
#pragma GCC unroll 8
            for (int j = 0; j < 8; ++j) total[j] += x[i + j];
        for (auto& part : total) sink = sink + part[0];
    });
    const double copy = seconds(threads, [&](int t) {
        for (size_t i = 0; i < count; ++i) to[t][i] = from[t][i] * 1.5f;
    });
    std::printf("{\"gflops\": %.1f, \"read_gb_s\": %.1f, \"copy_gb_s\": %.1f}\n", threads * CHAINS * 2.0 * LANES * STEPS / fma / 1e9,
                threads * count * 4 / read / 1e9, threads * count * 8 / copy / 1e9);
}
