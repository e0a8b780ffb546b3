#include "ops/attention.hpp"

#include <nanobind/stl/array.h>

#include "bind/arrays.hpp"
#include "runtime/memory.hpp"

namespace chainrule {
namespace {

template <class Scalar>
using Strided = nb::ndarray<Scalar, nb::ndim<4>, nb::device::cpu>;
template <class Scalar>
using Maybe = std::optional<Strided<Scalar>>;
using Key = std::array<uint64_t, 5>;

constexpr size_t UNITS = 8;             // of work, where there are fewer heads
constexpr size_t SHORTEST = 64;         // queries or keys in a unit of work
constexpr size_t SMALL_WORK = 1 << 18;  // multiplications: below it a second thread does not pay

template <class Scalar>
Heads<Scalar> heads(const Strided<Scalar>& array, const char* name, size_t B, size_t H, size_t rows, size_t columns) {
    const size_t expected[4] = {B, H, rows, columns};
    for (size_t i = 0; i < 4; ++i)
        if (array.shape(i) != expected[i])
            throw std::invalid_argument(std::string(name) + " has size " + std::to_string(array.shape(i)) +
                                        " on axis " + std::to_string(i) + ", expected " + std::to_string(expected[i]));
    if (columns > 1 && array.size() > 0 && array.stride(3) != 1)
        throw std::invalid_argument(std::string(name) + " has scattered rows");
    return {array.data(), size_t(array.stride(0)), size_t(array.stride(1)), size_t(array.stride(2))};
}

template <class Scalar>
Heads<Scalar> heads_or_none(const Maybe<Scalar>& array, const char* name, size_t B, size_t H, size_t rows,
                            size_t columns) {
    return array ? heads(*array, name, B, H, rows, columns) : Heads<Scalar>{};
}

Attention call_of(const Strided<const float>& q, const Strided<const float>& k, const Strided<const float>& v,
                  float scale, bool causal, const Maybe<const bool>& allowed, const Maybe<const float>& added,
                  double dropout, const Key& key, uint32_t threshold) {
    Attention call{};
    call.B = q.shape(0), call.H = q.shape(1), call.T = q.shape(2), call.D = q.shape(3);
    call.Hk = k.shape(1), call.S = k.shape(2), call.Dv = v.shape(3);
    if (call.Hk == 0 || call.H % call.Hk) throw std::invalid_argument("the heads of k must divide those of q");
    call.q = heads(q, "q", call.B, call.H, call.T, call.D);
    call.k = heads(k, "k", call.B, call.Hk, call.S, call.D);
    call.v = heads(v, "v", call.B, call.Hk, call.S, call.Dv);
    call.scale = scale;
    call.causal = causal;
    auto take_mask = [&](const auto& mask) {
        const size_t shape[4] = {call.B, call.H, call.T, call.S};
        for (size_t i = 0; i < 4; ++i) {
            if (mask.shape(i) != shape[i]) throw std::invalid_argument("mask does not have the shape of the scores");
            call.mask_step[i] = mask.stride(i);
        }
        return mask.data();
    };
    if (allowed) call.allowed = reinterpret_cast<const uint8_t*>(take_mask(*allowed));
    if (added) call.added = take_mask(*added);
    call.dropout = dropout > 0;
    call.keep = {{key[0], key[1], key[2], key[3], key[4]}, threshold};
    call.keep_scale = float(1 / (1 - dropout));
    return call;
}

// A head is a unit of work; few heads are cut into parts of this many queries or keys.
size_t part_of(size_t length, const Attention& call) {
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

void forward(Strided<float> o, Flat<float> lse, Strided<const float> q, Strided<const float> k, Strided<const float> v,
             float scale, bool causal, Maybe<const bool> allowed, Maybe<const float> added, double dropout,
             const Key& key, uint32_t threshold) {
    const Attention call = call_of(q, k, v, scale, causal, allowed, added, dropout, key, threshold);
    const Heads<float> out = heads(o, "o", call.B, call.H, call.T, call.Dv);
    float* lse_bht = pointer(lse, "lse", call.B * call.H * call.T);

    WithoutGil release;
    const size_t part = part_of(call.T, call), floats = attention().forward_scratch(call);
    for_units(call, (call.T + part - 1) / part, [&](size_t b, size_t shared, size_t i) {
        Scratch scratch(floats);
        attention().forward(out, lse_bht, call, b, shared, i * part, std::min(part, call.T - i * part), scratch.data());
    });
}

// dq (B, H, T, D) = the sum of the parts (parts, B, H, T, D), which is used up
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

void backward(Maybe<float> dq, Maybe<float> dk, Maybe<float> dv, Strided<const float> o, Flat<const float> lse,
              Strided<const float> dy, Strided<const float> q, Strided<const float> k, Strided<const float> v,
              float scale, bool causal, Maybe<const bool> allowed, Maybe<const float> added, double dropout,
              const Key& key, uint32_t threshold) {
    const Attention call = call_of(q, k, v, scale, causal, allowed, added, dropout, key, threshold);
    const size_t B = call.B, H = call.H, T = call.T, S = call.S, D = call.D;
    AttentionGradient gradient{};
    gradient.o = heads(o, "o", B, H, T, call.Dv);
    gradient.dy = heads(dy, "dy", B, H, T, call.Dv);
    gradient.lse_bht = pointer(lse, "lse", B * H * T);
    const Heads<float> whole_dq = gradient.dq = heads_or_none(dq, "dq", B, H, T, D);
    gradient.dk = heads_or_none(dk, "dk", B, call.Hk, S, D);
    gradient.dv = heads_or_none(dv, "dv", B, call.Hk, S, call.Dv);

    WithoutGil release;
    const size_t part = part_of(S, call), parts = std::max<size_t>(1, (S + part - 1) / part);
    const size_t floats = attention().backward_scratch(call, std::min(part, S));
    const bool split = dq && parts > 1;
    Scratch partial(split ? parts * B * H * T * D : 0);
    for_units(call, parts, [&](size_t b, size_t shared, size_t i) {
        Scratch scratch(floats);
        AttentionGradient mine = gradient;
        if (split) mine.dq = {partial.data() + i * B * H * T * D, H * T * D, T * D, D};
        attention().backward(mine, call, b, shared, i * part, std::min(part, S - i * part), scratch.data());
    });
    if (split) add_parts(whole_dq, call, partial.data(), parts);
}

}  // namespace

void bind_attention(nb::module_& m) {
    m.def("attention_forward", &forward, "o"_a.noconvert(), "lse"_a.noconvert(), "q"_a.noconvert(), "k"_a.noconvert(),
          "v"_a.noconvert(), "scale"_a, "causal"_a, "allowed"_a.noconvert().none(), "added"_a.noconvert().none(),
          "dropout"_a, "key"_a, "threshold"_a);
    m.def("attention_backward", &backward, "dq"_a.noconvert().none(), "dk"_a.noconvert().none(),
          "dv"_a.noconvert().none(), "o"_a.noconvert(), "lse"_a.noconvert(), "dy"_a.noconvert(), "q"_a.noconvert(),
          "k"_a.noconvert(), "v"_a.noconvert(), "scale"_a, "causal"_a, "allowed"_a.noconvert().none(),
          "added"_a.noconvert().none(), "dropout"_a, "key"_a, "threshold"_a);
}

}  // namespace chainrule
