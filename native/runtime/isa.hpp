// Kernels are compiled once per CPU level; the best one the machine can run is chosen at run time.
//
// A family of kernels is a struct of function pointers, declared in its own header and ended by CHAINRULE_KERNELS:
//
//     struct Gelu { void (*forward)(float* y_n, const float* x_n, size_t n); };
//     CHAINRULE_KERNELS(Gelu, gelu)              // gelu() is the table of the level in use
//
// ops/gelu.isa.cpp defines `const Gelu gelu = {...}` in the namespace of its level. Such a file must not include a
// header with inline code of its own: the linker keeps one copy of an inline function, and it could be the AVX-512 one.
//
// Argument order of a kernel: outputs, saved values, inputs, constants, sizes. A pointer's name carries its indices:
// x_rc is a row-major (R, C) array. Kernels do not allocate or throw.
#pragma once

#include <stddef.h>

namespace chainrule {

struct Level {
    const char* name;
    bool supported;  // by this CPU and its operating system
};

const Level* levels(size_t* count);  // those compiled in, lowest first
size_t current_level();              // index of the highest supported one, unless another was chosen
bool set_level(const char* name);    // false if it is unknown or unsupported
bool multiplies_bf16();              // this level uses an instruction for products of bf16 (VDPBF16PS), and the CPU has it
bool pairs_can_run();                // false at a level that uses it on a CPU that has it not

}  // namespace chainrule

#ifdef CHAINRULE_ISA  // inside a kernel file: declare this level's table only
#define CHAINRULE_KERNELS(Table, name) \
    namespace CHAINRULE_ISA {        \
    extern const Table name;           \
    }
#elif CHAINRULE_X86
#define CHAINRULE_KERNELS(Table, name)                                                              \
    namespace baseline { extern const Table name; }                                                 \
    namespace avx2 { extern const Table name; }                                                     \
    namespace avx512 { extern const Table name; }                                                   \
    inline const Table& name() {                                                                    \
        static const Table* const tables[] = {&baseline::name, &avx2::name, &avx512::name};         \
        return *tables[current_level()];                                                            \
    }
#else
#define CHAINRULE_KERNELS(Table, name)              \
    namespace baseline { extern const Table name; } \
    inline const Table& name() { return baseline::name; }
#endif
