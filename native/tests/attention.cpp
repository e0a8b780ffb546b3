#include "ops/attention.hpp"

#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

constexpr uint64_t KEY[5] = {3, 1, 4, 1, 5};
constexpr uint32_t THRESHOLD = 0x33333333;  // p = 1/5

enum class Mask { none, boolean, additive, distance };  // the last: a bias by s - t, where a boolean one allows it

struct Case {
    size_t B, H, Hk, T, S, D, Dv;
    bool causal, dropout;
    Mask mask;

    size_t queries() const { return B * H * T * D; }
    size_t keys() const { return B * Hk * S * D; }
    size_t values() const { return B * Hk * S * Dv; }
    size_t outputs() const { return B * H * T * Dv; }
    size_t diagonals() const { return T + S - 1; }
    bool hides() const { return mask == Mask::boolean || mask == Mask::distance; }
};

struct Inputs {
    Case c;
    Floats q = numbers(c.queries(), -2, 2), k = numbers(c.keys(), -2, 2), v = numbers(c.values());
    Floats dy = numbers(c.outputs()), added = numbers(c.T * c.S, -2, 2);
    Floats bias = numbers(c.H * c.diagonals(), -2, 2);
    std::vector<uint8_t> allowed = std::vector<uint8_t>(c.T * c.S, 1);
    double scale = 0.4;
};

Inputs inputs_of(const Case& c) {
    Inputs in{c};
    for (size_t i = 0; i < in.allowed.size(); ++i) in.allowed[i] = i % c.S == 0 || in.added[i] < 1;
    return in;
}

struct Result {
    Doubles o, lse;
};

// One query of the flat row (b, h, t): weights over the keys it sees, then their mean of the values.
void attend(Result& result, const Inputs& in, const double* q, const double* k, const double* v, const double* bias,
            size_t row) {
    const Case& c = in.c;
    const size_t t = row % c.T, h = row / c.T % c.H, b = row / c.T / c.H, head = b * c.Hk + h / (c.H / c.Hk);
    const size_t seen = c.causal ? t + c.S - c.T + 1 : c.S;
    Doubles score(seen, -INFINITY);
    double total = 0;
    for (size_t s = 0; s < seen; ++s) {
        if (c.hides() && !in.allowed[t * c.S + s]) continue;
        score[s] = c.mask == Mask::additive   ? in.added[t * c.S + s]
                   : c.mask == Mask::distance ? bias[h * c.diagonals() + c.T - 1 - t + s]
                                              : 0;
        for (size_t d = 0; d < c.D; ++d) score[s] += in.scale * q[row * c.D + d] * k[(head * c.S + s) * c.D + d];
        total += std::exp(score[s]);
    }
    result.lse[row] = std::log(total);
    for (size_t s = 0; s < seen; ++s) {
        if (c.dropout && !keeps(KEY, THRESHOLD, row * c.S + s)) continue;
        const double weight = std::exp(score[s]) / total * (c.dropout ? 1.25 : 1);
        for (size_t d = 0; d < c.Dv; ++d) result.o[row * c.Dv + d] += weight * v[(head * c.S + s) * c.Dv + d];
    }
}

Result plain(const Inputs& in, const Doubles& q, const Doubles& k, const Doubles& v, const Doubles& bias) {
    const size_t rows = in.c.B * in.c.H * in.c.T;
    Result result{Doubles(rows * in.c.Dv), Doubles(rows)};
    for (size_t row = 0; row < rows; ++row) attend(result, in, q.data(), k.data(), v.data(), bias.data(), row);
    return result;
}

Attention call_of(const Inputs& in) {
    const Case& c = in.c;
    Attention call = {c.B, c.H, c.Hk, c.T, c.S, c.D, c.Dv,
                      {in.q.data(), c.H * c.T * c.D, c.T * c.D, c.D},
                      {in.k.data(), c.Hk * c.S * c.D, c.S * c.D, c.D},
                      {in.v.data(), c.Hk * c.S * c.Dv, c.S * c.Dv, c.Dv},
                      static_cast<float>(in.scale), c.causal,
                      c.hides() ? in.allowed.data() : nullptr, {0, 0, c.S, 1},
                      c.mask == Mask::additive ? in.added.data() : nullptr, {0, 0, c.S, 1}, c.dropout, KeepMask(KEY, THRESHOLD), c.dropout ? 1.25f : 1.0f};
    if (c.mask == Mask::distance) {  // each query's row of the bias begins one before that of the query before
        call.added = in.bias.data() + c.T - 1;
        const size_t stride[4] = {0, c.diagonals(), size_t(-1), 1};
        std::copy_n(stride, 4, call.added_stride);
    }
    return call;
}

void backward(const std::vector<float*>& out, const Inputs& in, const Floats& o, const Floats& lse) {
    const Case& c = in.c;
    const size_t oh = c.T * c.Dv, qh = c.T * c.D, kh = c.S * c.D, vh = c.S * c.Dv;
    attention_backward({{o.data(), c.H * oh, oh, c.Dv}, {in.dy.data(), c.H * oh, oh, c.Dv}, lse.data(),
                        {out[0], c.H * qh, qh, c.D}, {out[1], c.Hk * kh, kh, c.D}, {out[2], c.Hk * vh, vh, c.Dv},
                        out.size() > 3 ? out[3] : nullptr},
                       call_of(in));
}

std::vector<Output> by_differences(const Inputs& in) {
    const Doubles q = wide(in.q), k = wide(in.k), v = wide(in.v), bias = wide(in.bias), dy = wide(in.dy);
    const auto loss = [&](const Doubles& q, const Doubles& k, const Doubles& v, const Doubles& bias) {
        return sum_of_products(plain(in, q, k, v, bias).o, dy);
    };
    std::vector<Output> found = {{gradient(q, [&](const Doubles& at) { return loss(at, k, v, bias); })},
                                 {gradient(k, [&](const Doubles& at) { return loss(q, at, v, bias); })},
                                 {gradient(v, [&](const Doubles& at) { return loss(q, k, at, bias); })}};
    if (in.c.mask == Mask::distance)
        found.push_back({gradient(bias, [&](const Doubles& at) { return loss(q, k, v, at); })});
    // With one key the terms of dq and dk cancel: they are as large as dv.
    found[0].terms = found[1].terms = largest_of(found[2].want);
    return found;
}

// Too large for differences: what this ISA gives in one go must be what every other one gives, with any number of threads.
std::vector<Output> by_itself(const Inputs& in, const Floats& o, const Floats& lse) {
    Floats dq(in.q.size()), dk(in.k.size()), dv(in.v.size()), dbias(in.bias.size());
    backward({dq.data(), dk.data(), dv.data(), dbias.data()}, in, o, lse);
    return {{wide(dq)}, {wide(dk)}, {wide(dv)}, {wide(dbias)}};
}

void check_case(const Case& c, bool small = true) {
    const Inputs in = inputs_of(c);
    const Result want = plain(in, wide(in.q), wide(in.k), wide(in.v), wide(in.bias));
    const std::string name = "attention " + std::to_string(c.T) + 'x' + std::to_string(c.S);
    check(name, 2e-6, {{want.o}, {want.lse}}, [&](const std::vector<float*>& out) {
        attention_forward({out[0], c.H * c.T * c.Dv, c.T * c.Dv, c.Dv}, out[1], call_of(in));
    });
    const Floats o = narrow(want.o), lse = narrow(want.lse);
    check(name + " backward", 5e-6, small ? by_differences(in) : by_itself(in, o, lse),
          [&](const std::vector<float*>& out) { backward(out, in, o, lse); });
}

}  // namespace

void check_attention() {
    check_case({1, 1, 1, 1, 1, 3, 2, false, false, Mask::none});
    check_case({2, 2, 1, 9, 13, 7, 5, true, false, Mask::none});
    check_case({1, 2, 2, 19, 19, 16, 17, true, true, Mask::none});
    check_case({2, 1, 1, 11, 23, 5, 4, false, false, Mask::boolean});
    check_case({1, 2, 1, 10, 21, 4, 4, true, true, Mask::additive});
    check_case({1, 2, 1, 70, 70, 2, 2, true, false, Mask::none});          // more than one unit of work,
    check_case({1, 2, 2, 150, 150, 19, 21, true, true, Mask::none}, false);  // and enough of it for several threads
    check_case({2, 2, 1, 9, 13, 3, 4, false, true, Mask::distance});
    check_case({2, 2, 2, 7, 7, 4, 3, true, false, Mask::distance});
    check_case({3, 2, 2, 150, 150, 8, 8, false, false, Mask::distance}, false);
}

}  // namespace chainrule::tests
