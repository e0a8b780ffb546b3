#include "ops/rotary.hpp"

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

// x (..., T, D) may have any strides except for its last axis, which is contiguous. cos and sin are (T, D/2) for all
// sequences, or such tables for as many sequences in a row each.
void rotate(Flat<float> y, nb::ndarray<const float, nb::device::cpu> x, Flat<const float> cos, Flat<const float> sin,
            float sign, bool interleaved) {
    const size_t axes = x.ndim();
    if (axes < 2 || x.shape(axes - 1) % 2 || (x.size() && x.stride(axes - 1) != 1))
        throw std::invalid_argument("x needs two axes, the last one even and contiguous");
    const size_t T = x.shape(axes - 2), D = x.shape(axes - 1), table = T * D / 2;
    const size_t sequences = table ? x.size() / (T * D) : 0;
    float* y_std = pointer(y, "y", x.size());
    const size_t tables = table ? std::max<size_t>(1, cos.size() / table) : 1;
    if (sequences % tables) throw std::invalid_argument("cos must be for all sequences, or for equally many each");
    const size_t share = std::max<size_t>(1, sequences / tables);
    const float* cos_sth = pointer(cos, "cos", tables * table);
    const float* sin_sth = pointer(sin, "sin", cos.size());
    const float* x_std = x.data();
    const auto kernel = interleaved ? rotary().rotate_neighbors : rotary().rotate_halves;

    WithoutGil release;
    const size_t rows = std::max<size_t>(1, BLOCK_ELEMENTS / std::max<size_t>(1, D)), pieces = (T + rows - 1) / rows;
    auto run = [&](size_t block) {
        const size_t sequence = block / pieces, t = block % pieces * rows;
        const float* from = x_std + static_cast<ptrdiff_t>(t) * x.stride(axes - 2);
        for (size_t axis = axes - 2, rest = sequence; axis-- > 0; rest /= x.shape(axis))
            from += static_cast<ptrdiff_t>(rest % x.shape(axis)) * x.stride(axis);
        const size_t entry = sequence / share * table + t * (D / 2);
        kernel(y_std + (sequence * T + t) * D, from, x.stride(axes - 2), cos_sth + entry, sin_sth + entry, sign,
               std::min(rows, T - t), D / 2);
    };
    if (x.size() < SMALL)
        for (size_t block = 0; block < sequences * pieces; ++block) run(block);
    else
        parallel_for(sequences * pieces, run);
}

}  // namespace

void bind_rotary(nb::module_& m) {
    def(m, "rotary", rotate, "y", "x", "cos", "sin", "sign", "interleaved");
}

}  // namespace chainrule
