// Which of the compiled CPU levels runs.
#include "kernels.hpp"

#include <atomic>
#include <cstring>

namespace chainrule {
namespace {

#if CHAINRULE_X86_LEVELS
bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
bool has_avx512() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
const Level table[] = {
    {"baseline", &baseline::kernels, true},
    {"avx2", &avx2::kernels, has_avx2()},
    {"avx512", &avx512::kernels, has_avx512()},
};
#else
const Level table[] = {{"baseline", &baseline::kernels, true}};
#endif

constexpr size_t COUNT = sizeof table / sizeof *table;

const Level* highest() {
    const Level* best = table;
    for (const Level& level : table)
        if (level.supported) best = &level;
    return best;
}

std::atomic<const Level*> current{highest()};

}  // namespace

const Level* levels(size_t* count) {
    *count = COUNT;
    return table;
}

const Level& current_level() {
    return *current.load(std::memory_order_relaxed);
}

bool set_level(const char* name) {
    for (const Level& level : table) {
        if (level.supported && std::strcmp(level.name, name) == 0) {
            current.store(&level, std::memory_order_relaxed);
            return true;
        }
    }
    return false;
}

}  // namespace chainrule
