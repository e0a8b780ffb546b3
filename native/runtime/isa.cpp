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
const Isa table[] = {{"baseline", true}, {"avx2", has_avx2()}, {"avx512", has_avx512()}};
#else
const Isa table[] = {{"baseline", true}};
#endif

constexpr size_t COUNT = sizeof table / sizeof *table;

size_t highest() {
    size_t best = 0;
    for (size_t i = 0; i < COUNT; ++i)
        if (table[i].supported) best = i;
    return best;
}

std::atomic<size_t> current{highest()};

#if CHAINRULE_X86 && !defined(__clang__)  // Clang cannot compile a single file for it (gemm/bf16.isa.cpp)
const bool cpu_has_vdpbf16ps = __builtin_cpu_supports("avx512bf16");

bool isa_has_vdpbf16ps() {
    return std::strcmp(table[current_isa()].name, "avx512") == 0;
}
#else
constexpr bool cpu_has_vdpbf16ps = false;

bool isa_has_vdpbf16ps() {
    return false;
}
#endif

}  // namespace

const Isa* isas(size_t* count) {
    *count = COUNT;
    return table;
}

size_t current_isa() {
    return current.load(std::memory_order_relaxed);
}

bool set_isa(const char* name) {
    for (size_t i = 0; i < COUNT; ++i) {
        if (table[i].supported && std::strcmp(table[i].name, name) == 0) {
            current.store(i, std::memory_order_relaxed);
            return true;
        }
    }
    return false;
}

bool uses_vdpbf16ps() {
    return isa_has_vdpbf16ps() && cpu_has_vdpbf16ps;
}

bool bf16_pairs_can_run() {
    return !isa_has_vdpbf16ps() || cpu_has_vdpbf16ps;
}

}  // namespace chainrule
