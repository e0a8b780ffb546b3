// Which values dropout keeps: a function of a key and of the position in the flat array, nothing else.
//
// The generator is Philox4x64-10; the recipe is in docs/derivations/dropout.md. A block of it is eight 32-bit words.
// Ten rounds of two 64-bit products each: a scalar product takes one cycle, and vectors would need four 32-bit ones.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace chainrule {

struct KeepMask {
    uint64_t key[5];     // what chainrule.random.key gives: seed, purpose, three indices
    uint32_t threshold;  // a word below it is dropped: round(p 2^32)
};

}  // namespace chainrule

#ifdef CHAINRULE_LEVEL
#include "vec.hpp"

namespace chainrule::CHAINRULE_LEVEL {
namespace {

INLINE void philox(int32_t* words_8, const KeepMask& mask, uint64_t block) {
    uint64_t c[4] = {block + 1, mask.key[2], mask.key[3], mask.key[4]};
    uint64_t k0 = mask.key[0], k1 = mask.key[1];
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
        const auto a = static_cast<unsigned __int128>(0xD2E7470EE14C6C93) * c[0];
        const auto b = static_cast<unsigned __int128>(0xCA5A826395121157) * c[2];
        c[0] = static_cast<uint64_t>(b >> 64) ^ c[1] ^ k0;
        c[1] = static_cast<uint64_t>(b);
        c[2] = static_cast<uint64_t>(a >> 64) ^ c[3] ^ k1;
        c[3] = static_cast<uint64_t>(a);
        k0 += 0x9E3779B97F4A7C15;
        k1 += 0xBB67AE8584CAA73B;
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {  // of each 64 bits the low half first
        words_8[2 * i] = static_cast<int32_t>(c[i]);
        words_8[2 * i + 1] = static_cast<int32_t>(c[i] >> 32);
    }
}

// The words of the flat positions p .. p + 15; cheapest where p is a multiple of 8.
INLINE Int random_words(const KeepMask& mask, uint64_t p) {
    int32_t words[24];
    philox(words, mask, p / 8);
    philox(words + 8, mask, p / 8 + 1);
    if (p % 8) philox(words + 16, mask, p / 8 + 2);
    return load_int(words + p % 8);
}

// -1 where the value at p .. p + 15 is kept, 0 where it is dropped.
INLINE Int kept(const KeepMask& mask, uint64_t p) {
    const Int sign = fill_int(INT32_MIN);  // flipped, it makes the signed comparison an unsigned one
    return (random_words(mask, p) ^ sign) >= (fill_int(static_cast<int32_t>(mask.threshold)) ^ sign);
}

}  // namespace
}  // namespace chainrule::CHAINRULE_LEVEL
#endif
