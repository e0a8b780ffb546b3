// Inverted dropout.        Derivation: docs/derivations/dropout.md
#include "ops/dropout.hpp"

#include "simd/vec.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

void forward(float* y_n, uint8_t* keep_n, const float* x_n, const KeepMask& mask, float scale, size_t first, size_t n) {
    constexpr size_t CHUNK = 512;
    int32_t words[CHUNK] = {};
    for (size_t start = 0; start < n; start += CHUNK) {
        const size_t count = n - start < CHUNK ? n - start : CHUNK;
        random_words(words, mask, (first + start) / 8, (count + 7) / 8);
        for (size_t j = 0; j < count; j += LANES) {
            const size_t i = start + j, left = n - i;
            const Int keep = kept(mask, words + j);  // [DO.1]
            store_next(y_n + i, load_next(x_n + i, left) * select(keep, fill(scale), fill(0)), left);  // [DO.2]
            if (left >= LANES)
                store_bools(keep_n + i, keep);
            else
                for (size_t k = 0; k < left; ++k)
                    keep_n[i + k] = static_cast<uint32_t>(words[j + k]) >= mask.threshold;
        }
    }
}

void backward(float* dx_n, const uint8_t* keep_n, const float* dy_n, float scale, size_t n) {
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES)  // forward was: y = x keep / (1 - p)                               [DO.3]
        store(dx_n + i, load(dy_n + i) * (to_float(load_bools(keep_n + i)) * fill(scale)));
    for (size_t i = whole; i < n; ++i) dx_n[i] = dy_n[i] * (keep_n[i] * scale);
}

}  // namespace

const Dropout dropout = {forward, backward};

}  // namespace chainrule::CHAINRULE_ISA
