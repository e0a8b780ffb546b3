#include "ops/pooling.hpp"

#include "runtime/pool.hpp"
#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

void check_texts(size_t B, size_t T, size_t C, bool last) {
    const Floats x = numbers(B * T * C), dy = numbers(B * C);
    const std::vector<int64_t> padding = ids(B, T);
    std::vector<uint8_t> mask(B * T);
    for (size_t i = 0; i < B * T; ++i) mask[i] = i % T < T - padding[i / T];
    const auto plain = [&](const Doubles& at) {
        Doubles y(B * C);
        for (size_t b = 0; b < B; ++b) {
            const size_t tokens = T - padding[b], first = last ? tokens - 1 : 0;
            for (size_t t = first; t < tokens; ++t)
                for (size_t c = 0; c < C; ++c) y[b * C + c] += at[(b * T + t) * C + c] / (tokens - first);
        }
        return y;
    };
    const std::string name = last ? "pooling, last" : "pooling, mean";
    check(name, 1e-6, {{plain(wide(x))}}, [&](const std::vector<float*>& out) {
        for_row_blocks(B, T * C, 1, [&](size_t b, size_t, size_t) {
            pooling().forward(out[0] + b * C, &x[b * T * C], &mask[b * T], last, T, C);
        });
    }, Bits::of_all);
    const Doubles dx = gradient(wide(x), [&](const Doubles& at) { return sum_of_products(plain(at), wide(dy)); });
    check(name + " backward", 1e-6, {{dx}}, [&](const std::vector<float*>& out) {
        for_row_blocks(B, T * C, 1, [&](size_t b, size_t, size_t) {
            pooling().backward(out[0] + b * T * C, &dy[b * C], &mask[b * T], last, T, C);
        });
    }, Bits::of_all);
}

void check_largest(size_t B, size_t T, size_t C) {
    Floats x = numbers(B * T * C), dy = numbers(B * C);
    const std::vector<int64_t> padding = ids(B, T);
    if (T > 1) std::copy_n(x.begin(), C, x.begin() + C);  // equal ones
    std::vector<uint8_t> mask(B * T);
    for (size_t i = 0; i < B * T; ++i) mask[i] = i % T < T - padding[i / T];
    Doubles y(B * C), dx(B * T * C);
    for (size_t b = 0; b < B; ++b)
        for (size_t c = 0; c < C; ++c) {
            const auto at = [&](size_t t) { return (b * T + t) * C + c; };
            const size_t tokens = T - padding[b];
            double largest = x[at(0)], count = 0;
            for (size_t t = 0; t < tokens; ++t) largest = std::max<double>(largest, x[at(t)]);
            for (size_t t = 0; t < tokens; ++t) count += x[at(t)] == largest;
            for (size_t t = 0; t < tokens; ++t) dx[at(t)] = x[at(t)] == largest ? dy[b * C + c] / count : 0;
            y[b * C + c] = largest;
        }
    check("pooling, max", 0, {{y}}, [&](const std::vector<float*>& out) {
        for_row_blocks(B, T * C, 1, [&](size_t b, size_t, size_t) {
            pooling().max_forward(out[0] + b * C, &x[b * T * C], &mask[b * T], T, C);
        });
    }, Bits::of_all);
    const Floats found = narrow(y);
    check("pooling, max backward", 1e-6, {{dx}}, [&](const std::vector<float*>& out) {
        for_row_blocks(B, T * C, 1, [&](size_t b, size_t, size_t) {
            pooling().max_backward(out[0] + b * T * C, &dy[b * C], &x[b * T * C], &found[b * C], &mask[b * T], T, C);
        });
    }, Bits::of_all);
}

}  // namespace

void check_pooling() {
    check_largest(1, 1, 1);
    check_largest(3, 5, 16);
    check_largest(4, 3, 37);
    check_largest(2, 2, 130);
    for (bool last : {false, true}) {
        check_texts(1, 1, 1, last);
        check_texts(3, 5, 16, last);
        check_texts(4, 3, 37, last);
        check_texts(2, 2, 130, last);
    }
}

}  // namespace chainrule::tests
