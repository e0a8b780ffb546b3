// Which values dropout keeps: a pure function of a key and the position in the flat array.
//
// The generator is Philox4x64-10, see docs/derivations/dropout.md. A block is eight 32-bit words, from ten rounds of two
// 64-bit multiplications: a scalar one takes one cycle, a vector one would take four 32-bit multiplications.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace chainrule {

struct KeepMask {
    KeepMask() = default;

    // key: as chainrule.random.key returns it, (seed, purpose, three indices). A word below threshold is dropped.
    KeepMask(const uint64_t (&key)[5], uint32_t threshold)
        : counter{key[2], key[3], key[4]}, threshold(threshold) {
        for (int round = 0; round < 10; ++round) {
            round_key[round][0] = key[0] + round * 0x9E3779B97F4A7C15;
            round_key[round][1] = key[1] + round * 0xBB67AE8584CAA73B;
        }
    }
    uint64_t round_key[10][2];
    uint64_t counter[3];
    uint32_t threshold;  // round(p 2^32)
};

}  // namespace chainrule

#ifdef CHAINRULE_ISA
#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

// The words of the flat positions 8 first, 8 first + 1, ... Many blocks in one call: the CPU overlaps them, and a vector
// load right after the scalar stores would stall.
INLINE void random_words(int32_t* words, const KeepMask& mask, uint64_t first, size_t blocks) {
    for (size_t block = 0; block < blocks; ++block, words += 8) {
        uint64_t c[4] = {first + block + 1, mask.counter[0], mask.counter[1], mask.counter[2]};
#pragma GCC unroll 10
        for (int round = 0; round < 10; ++round) {
            const auto a = static_cast<unsigned __int128>(0xD2E7470EE14C6C93) * c[0];
            const auto b = static_cast<unsigned __int128>(0xCA5A826395121157) * c[2];
            c[0] = static_cast<uint64_t>(b >> 64) ^ c[1] ^ mask.round_key[round][0];
            c[1] = static_cast<uint64_t>(b);
            c[2] = static_cast<uint64_t>(a >> 64) ^ c[3] ^ mask.round_key[round][1];
            c[3] = static_cast<uint64_t>(a);
        }
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {  // of each 64 bits the low half first
            words[2 * i] = static_cast<int32_t>(c[i]);
            words[2 * i + 1] = static_cast<int32_t>(c[i] >> 32);
        }
    }
}

// -1 where a value with one of these sixteen words is kept, 0 where it is dropped.
INLINE Int kept(const KeepMask& mask, const int32_t* words_16) {
    const Int sign = fill_int(INT32_MIN);  // flipping the sign makes a signed comparison unsigned
    return (load_int(words_16) ^ sign) >= (fill_int(static_cast<int32_t>(mask.threshold)) ^ sign);
}

// The same for the flat positions p .. p + 15, p not necessarily a multiple of 8.
INLINE Int kept(const KeepMask& mask, uint64_t p) {
    int32_t words[24];
    random_words(words, mask, p / 8, 3);
    return kept(mask, words + p % 8);
}

}  // namespace
}  // namespace chainrule::CHAINRULE_ISA
#endif
