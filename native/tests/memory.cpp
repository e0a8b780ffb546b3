#include "runtime/memory.hpp"

#include <cstdint>
#include <new>

#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

bool scratch_is_refused(size_t count) {
    try {
        Scratch scratch(count);
        return false;
    } catch (const std::bad_alloc&) {
        return true;
    }
}

}  // namespace

void check_memory() {
    const std::vector<size_t> counts = {SIZE_MAX / 8 + 2, SIZE_MAX / 6, SIZE_MAX / 4};  // of floats: 2^63 bytes or more
    const Output refused{Doubles(2 * counts.size(), 1)};
    check("memory, too large", 0, {refused}, [&](const std::vector<float*>& out) {
        for (size_t i = 0; i < counts.size(); ++i) {
            out[0][2 * i] = scratch_is_refused(counts[i]);
            out[0][2 * i + 1] = allocate(counts[i] * sizeof(float)) == nullptr;
        }
    }, Bits::of_all);
}

}  // namespace chainrule::tests
