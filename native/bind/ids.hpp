// Class and row ids among the arguments of a binding.
#pragma once

#include "bind/arrays.hpp"

namespace chainrule {

using Ids = Array<const int64_t, 1>;

// The ids, checked: kernels use them as indices.
inline const int64_t* id_pointer(const Ids& ids, const char* name, size_t expected, size_t limit) {
    const int64_t* id = pointer(ids, name, expected);
    for (size_t i = 0; i < expected; ++i)
        if (id[i] < 0 || static_cast<size_t>(id[i]) >= limit)
            throw std::invalid_argument(std::string(name) + " holds " + std::to_string(id[i]) +
                                        ", expected 0 to " + std::to_string(static_cast<int64_t>(limit) - 1));
    return id;
}

}  // namespace chainrule
