// Kernels are compiled once per instruction set (ISA); the highest one that the CPU supports is chosen at run time.
//
// A family of kernels is a struct of function pointers, declared in its own header and ended by CHAINRULE_KERNELS:
//
//     struct Gelu { void (*forward)(float* y_n, const float* x_n, size_t n); };
//     CHAINRULE_KERNELS(Gelu, gelu)              // gelu() is the table of the ISA in use
//
// ops/gelu.isa.cpp defines `const Gelu gelu = {...}` in the namespace of its ISA. An .isa.cpp file must not include a
// header with inline functions of its own: the linker keeps one copy of each, and it could be the AVX-512 one.
//
// Argument order of a kernel: outputs, saved values, inputs, constants, sizes. A pointer's name carries its indices:
// x_rc is a row-major (R, C) array. Parameter gradients are added to, activation gradients are assigned. Kernels do not
// allocate or throw.
#pragma once

#include <stddef.h>

namespace chainrule {

struct Isa {
    const char* name;
    bool supported;  // by this CPU and its operating system
};

const Isa* isas(size_t* count);  // all that were compiled, lowest first
size_t current_isa();            // index of the highest supported one, unless set_isa chose another
bool set_isa(const char* name);  // false if the name is unknown or the CPU lacks the ISA
bool uses_vdpbf16ps();           // the kernels of this ISA contain VDPBF16PS (AVX-512 BF16), and the CPU has it
bool bf16_pairs_can_run();       // false if this ISA's code needs VDPBF16PS and the CPU lacks it

}  // namespace chainrule

#ifdef CHAINRULE_ISA  // inside an .isa.cpp file: declare this ISA's table only
#define CHAINRULE_KERNELS(Table, name) \
    namespace CHAINRULE_ISA {          \
    extern const Table name;           \
    }
#elif CHAINRULE_X86
#define CHAINRULE_KERNELS(Table, name)                                                              \
    namespace baseline { extern const Table name; }                                                 \
    namespace avx2 { extern const Table name; }                                                     \
    namespace avx512 { extern const Table name; }                                                   \
    inline const Table& name() {                                                                    \
        static const Table* const tables[] = {&baseline::name, &avx2::name, &avx512::name};         \
        return *tables[current_isa()];                                                              \
    }
#else
#define CHAINRULE_KERNELS(Table, name)              \
    namespace baseline { extern const Table name; } \
    inline const Table& name() { return baseline::name; }
#endif
