// Class and row ids among the arguments of a binding.
#pragma once

#include "bind/arrays.hpp"

namespace chainrule {

using Ids = Array<const int64_t, 1>;

// Kernels use ids as indices, from `lowest` to limit - 1.
template <class Int>
void check_ids(const Int* id, size_t count, const char* name, int64_t lowest, size_t limit) {
    const int64_t highest = static_cast<int64_t>(limit) - 1;
    for (size_t i = 0; i < count; ++i)
        if (id[i] < lowest || id[i] > highest)
            throw std::invalid_argument(std::string(name) + " holds " + std::to_string(id[i]) + ", expected " +
                                        std::to_string(lowest) + " to " + std::to_string(highest));
}

inline const int64_t* id_pointer(const Ids& ids, const char* name, size_t expected, size_t limit) {
    const int64_t* id = pointer(ids, name, expected);
    check_ids(id, expected, name, 0, limit);
    return id;
}

}  // namespace chainrule
