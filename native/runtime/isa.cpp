#include "runtime/isa.hpp"

#include <atomic>
#include <cstring>

namespace chainrule {
namespace {

#if CHAINRULE_X86
bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
const Level table[] = {{"baseline", true}, {"avx2", has_avx2()}, {"avx512", has_avx512()}};
#else
const Level table[] = {{"baseline", true}};
#endif

constexpr size_t COUNT = sizeof table / sizeof *table;

size_t highest() {
    size_t best = 0;
    for (size_t i = 0; i < COUNT; ++i)
        if (table[i].supported) best = i;
    return best;
}

std::atomic<size_t> current{highest()};

}  // namespace

const Level* levels(size_t* count) {
    *count = COUNT;
    return table;
}

size_t current_level() {
    return current.load(std::memory_order_relaxed);
}

#if CHAINRULE_X86 && !defined(__clang__)  // Clang cannot compile one file of a level for it (gemm/bf16.isa.cpp)
namespace {

bool level_multiplies_bf16() {
    return std::strcmp(table[current_level()].name, "avx512") == 0;
}
const bool cpu_multiplies_bf16 = __builtin_cpu_supports("avx512bf16");

}  // namespace

bool multiplies_bf16() {
    return level_multiplies_bf16() && cpu_multiplies_bf16;
}

bool pairs_can_run() {
    return !level_multiplies_bf16() || cpu_multiplies_bf16;
}
#else
bool multiplies_bf16() {
    return false;
}

bool pairs_can_run() {
    return true;
}
#endif

bool set_level(const char* name) {
    for (size_t i = 0; i < COUNT; ++i) {
        if (table[i].supported && std::strcmp(table[i].name, name) == 0) {
            current.store(i, std::memory_order_relaxed);
            return true;
        }
    }
    return false;
}

}  // namespace chainrule
