// Rounds weights to a format and puts them into panels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "decode/panels.hpp"

namespace chainrule {

// Outputs `first` to `first + outputs` of a matrix, weight_oi (outputs, inputs), into its panels; other outputs stay as
// they are. Inputs up to whole groups are 0. False if a weight is not finite and the format cannot hold it. Formats from
// q5_0 on are those of files alone.
bool pack(int32_t* words, const float* weight_oi, Format format, size_t first, size_t outputs, size_t inputs);

// The same of a matrix that is in blocks already, a row of whole blocks for each output: their bytes stay as they are.
void pack_blocks(int32_t* words, const uint8_t* blocks, Format format, size_t first, size_t outputs, size_t inputs);

}  // namespace chainrule
