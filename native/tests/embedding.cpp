#include "ops/embedding.hpp"

#include "runtime/pool.hpp"
#include "tests/check.hpp"

namespace chainrule::tests {

void check_embedding() {
    for (size_t C : {1, 16, 45, 300}) {
        constexpr size_t V = 11, N = 70;  // so that ids repeat
        const Floats w = numbers(V * C), dy = numbers(N * C), old = numbers(V * C);
        const std::vector<int64_t> id = ids(N, V);
        Doubles y(N * C), dw = wide(old);
        for (size_t n = 0; n < N; ++n)
            for (size_t c = 0; c < C; ++c) {
                y[n * C + c] = w[id[n] * C + c];
                dw[id[n] * C + c] += dy[n * C + c];
            }
        check("embedding", 0, {{y}},
              [&](const std::vector<float*>& out) { embedding().gather(out[0], w.data(), id.data(), N, C); }, Bits::of_all);
        check("embedding backward", 1e-6, {{dw, old}}, [&](const std::vector<float*>& out) {
            for_row_blocks(C, N, 128, [&](size_t, size_t first, size_t columns) {
                embedding().scatter_add(out[0], dy.data(), id.data(), first, columns, N, C);
            });
        }, Bits::of_all);
        constexpr size_t R = 10, J = N / R;
        Floats weight = numbers(N);
        for (size_t n = 0; n < N; n += 3) weight[n] = 0;
        const Floats bags = numbers(R * C);
        Doubles sums(R * C), scattered = wide(old);
        for (size_t n = 0; n < N; ++n)
            for (size_t c = 0; c < C; ++c) {
                sums[n / J * C + c] += double(weight[n]) * w[id[n] * C + c];
                scattered[id[n] * C + c] += double(weight[n]) * bags[n / J * C + c];
            }
        check("embedding bag", 1e-6, {{sums}}, [&](const std::vector<float*>& out) {
            embedding().bag(out[0], w.data(), id.data(), weight.data(), R, J, C);
        }, Bits::of_all);
        const Floats ones(N, 1);
        Floats weighed(R * C);
        embedding().bag(weighed.data(), w.data(), id.data(), ones.data(), R, J, C);
        check("embedding bag without weights", 0, {{wide(weighed)}}, [&](const std::vector<float*>& out) {
            embedding().bag(out[0], w.data(), id.data(), nullptr, R, J, C);
        }, Bits::of_all);
        check("embedding bag backward", 1e-6, {{scattered, old}}, [&](const std::vector<float*>& out) {
            for_row_blocks(C, N, 128, [&](size_t, size_t first, size_t columns) {
                embedding().bag_scatter_add(out[0], bags.data(), id.data(), weight.data(), first, columns, R, J, C);
            });
        }, Bits::of_all);
    }
}

}  // namespace chainrule::tests
