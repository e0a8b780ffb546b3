// Attention as units of work for the pool: a key head with its queries, cut further where there are few heads.
#include "ops/attention.hpp"

#include "runtime/memory.hpp"
#include "runtime/pool.hpp"

namespace chainrule {
namespace {

constexpr size_t UNITS = 8;             // of work, at least, where the sequences are long enough
constexpr size_t SHORTEST = 64;         // queries or keys in a unit
constexpr size_t SMALL_WORK = 1 << 18;  // multiplications: below it a second thread does not pay

// How many of `length` queries or keys are one unit. It depends on the shapes alone, since dq is summed by units.
size_t unit_length(size_t length, const Attention& call) {
    const size_t parts = std::max<size_t>(1, UNITS / std::max<size_t>(1, call.B * call.Hk));
    const size_t part = (length + parts - 1) / parts;
    return (std::max(part, SHORTEST) + SHORTEST - 1) / SHORTEST * SHORTEST;
}

template <class Body>  // body(batch entry, key head, part)
void for_units(const Attention& call, size_t parts, Body&& body) {
    const size_t units = call.B * call.Hk * parts;
    auto unit = [&](size_t i) { body(i / parts / call.Hk, i / parts % call.Hk, i % parts); };
    if (call.B * call.H * call.T * call.S * call.D < SMALL_WORK)
        for (size_t i = 0; i < units; ++i) unit(i);
    else
        parallel_for(units, unit);
}

// dq (B, H, T, D) = the sum of the parts (parts, B, H, T, D), which are overwritten
void add_parts(Heads<float> dq, const Attention& call, float* parts_bhtd, size_t parts) {
    const size_t rows = call.B * call.H * call.T, D = call.D;
    for_row_blocks(rows, D, SHORTEST, [&](size_t, size_t first, size_t count) {
        for (size_t r = first; r < first + count; ++r) {
            float* row = dq.at(r / call.T / call.H, r / call.T % call.H, r % call.T);
            std::fill(row, row + D, 0.0f);
            add_blocks(row, parts_bhtd + r * D, parts, rows * D, D);
        }
    });
}

}  // namespace

void attention_forward(Heads<float> o, float* lse_bht, const Attention& call) {
    const size_t length = unit_length(call.T, call), floats = attention().forward_scratch(call);
    for_units(call, (call.T + length - 1) / length, [&](size_t b, size_t hk, size_t i) {
        Scratch scratch(floats);
        const size_t t = i * length;
        attention().forward(o, lse_bht, call, b, hk, t, std::min(length, call.T - t), scratch.data());
    });
}

void attention_backward(const AttentionGradient& gradient, const Attention& call) {
    const size_t B = call.B, H = call.H, T = call.T, S = call.S, D = call.D;
    const size_t length = unit_length(S, call), parts = std::max<size_t>(1, (S + length - 1) / length);
    const size_t floats = attention().backward_scratch(call, std::min(length, S));
    const bool split = gradient.dq.data && parts > 1;
    const size_t diagonals = gradient.diagonals_hn ? H * (T + S - 1) : 0, group = diagonals / call.Hk;
    Scratch partial(split ? parts * B * H * T * D : 0), along(B * parts * diagonals);
    for_units(call, parts, [&](size_t b, size_t hk, size_t i) {
        Scratch scratch(floats);
        AttentionGradient own = gradient;
        if (split) own.dq = {partial.data() + i * B * H * T * D, H * T * D, T * D, D};
        if (diagonals) {  // each unit has its own, of the heads that share its keys
            own.diagonals_hn = along.data() + (b * parts + i) * diagonals;
            std::fill_n(own.diagonals_hn + hk * group, group, 0.0f);
        }
        const size_t s = i * length;
        attention().backward(own, call, b, hk, s, std::min(length, S - s), scratch.data());
    });
    if (split) add_parts(gradient.dq, call, partial.data(), parts);
    if (!diagonals) return;
    std::fill_n(gradient.diagonals_hn, diagonals, 0.0f);
    add_blocks(gradient.diagonals_hn, along.data(), B * parts, diagonals, diagonals);
}

}  // namespace chainrule
