// Kernels over whole arrays: work split into blocks fixed by the sizes alone, shared among threads.
#pragma once

#include "kernels.hpp"

namespace chainrule {

void set_threads(int count);
int get_threads();

namespace parallel {
LayernormForward layernorm_forward;
LayernormBackward layernorm_backward;
}  // namespace parallel

}  // namespace chainrule
