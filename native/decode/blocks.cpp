#include "decode/blocks.hpp"

namespace chainrule {

const Blocks& blocks() {
    const Blocks& found = blocks_of_isa();
#if CHAINRULE_X86 && !defined(__clang__)  // which compiles the avx512 ISA without VPDPBUSD: see blocks.isa.cpp
    static const bool vnni = __builtin_cpu_supports("avx512vnni");
    if (!vnni && &found == &avx512::blocks_of_isa) return avx2::blocks_of_isa;
#endif
    return found;
}

}  // namespace chainrule
