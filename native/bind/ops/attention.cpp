#include "ops/attention.hpp"

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

template <class Scalar>
using Strided = nb::ndarray<Scalar, nb::ndim<4>, nb::device::cpu>;
template <class Scalar>
using Maybe = std::optional<Strided<Scalar>>;

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
    auto take_mask = [&](const auto& mask, size_t (&stride)[4]) {
        const size_t shape[4] = {call.B, call.H, call.T, call.S};
        for (size_t i = 0; i < 4; ++i) {
            if (mask.shape(i) != shape[i]) throw std::invalid_argument("mask does not have the shape of the scores");
            stride[i] = mask.stride(i);
        }
        return mask.data();
    };
    if (allowed) call.allowed = reinterpret_cast<const uint8_t*>(take_mask(*allowed, call.allowed_stride));
    if (added) call.added = take_mask(*added, call.added_stride);
    call.dropout = dropout > 0;
    call.keep = {{key[0], key[1], key[2], key[3], key[4]}, threshold};
    call.keep_scale = float(1 / (1 - dropout));
    return call;
}

void forward(Strided<float> o, Flat<float> lse, Strided<const float> q, Strided<const float> k, Strided<const float> v,
             float scale, bool causal, Maybe<const bool> allowed, Maybe<const float> added, double dropout,
             const Key& key, uint32_t threshold) {
    const Attention call = call_of(q, k, v, scale, causal, allowed, added, dropout, key, threshold);
    const Heads<float> out = heads(o, "o", call.B, call.H, call.T, call.Dv);
    float* lse_bht = pointer(lse, "lse", call.B * call.H * call.T);

    WithoutGil release;
    attention_forward(out, lse_bht, call);
}

void backward(Maybe<float> dq, Maybe<float> dk, Maybe<float> dv, std::optional<Matrix> diagonals,
              Strided<const float> o, Flat<const float> lse, Strided<const float> dy, Strided<const float> q,
              Strided<const float> k, Strided<const float> v, float scale, bool causal, Maybe<const bool> allowed,
              Maybe<const float> added, double dropout, const Key& key, uint32_t threshold) {
    const Attention call = call_of(q, k, v, scale, causal, allowed, added, dropout, key, threshold);
    const size_t B = call.B, H = call.H, T = call.T, S = call.S, D = call.D;
    AttentionGradient gradient{};
    gradient.o = heads(o, "o", B, H, T, call.Dv);
    gradient.dy = heads(dy, "dy", B, H, T, call.Dv);
    gradient.lse_bht = pointer(lse, "lse", B * H * T);
    gradient.dq = heads_or_none(dq, "dq", B, H, T, D);
    gradient.dk = heads_or_none(dk, "dk", B, call.Hk, S, D);
    gradient.dv = heads_or_none(dv, "dv", B, call.Hk, S, call.Dv);
    gradient.diagonals_hn = pointer_or_null(diagonals, "diagonals", H * (T + S - 1));

    WithoutGil release;
    attention_backward(gradient, call);
}

// y (..., P + S) is true for a prefix of P keys, then x (..., S).
void prefixed_mask(Flat<bool> y, Flat<const bool> x, size_t prefix) {
    const auto [R, S] = Rows(x);
    bool* y_rs = pointer(y, "y", R * (prefix + S));
    for (size_t r = 0; r < R; ++r, y_rs += prefix + S) {
        std::fill_n(y_rs, prefix, true);
        std::copy_n(x.data() + r * S, S, y_rs + prefix);
    }
}

}  // namespace

void bind_attention(nb::module_& m) {
    def(m, "prefixed_mask", prefixed_mask, "y", "x", "prefix");
    def(m, "attention_forward", forward, "o", "lse", "q", "k", "v", "scale", "causal", "allowed", "added", "dropout",
        "key", "threshold");
    def(m, "attention_backward", backward, "dq", "dk", "dv", "diagonals", "o", "lse", "dy", "q", "k", "v", "scale",
        "causal", "allowed", "added", "dropout", "key", "threshold");
}

}  // namespace chainrule
