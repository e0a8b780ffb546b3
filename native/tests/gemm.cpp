#include "gemm/gemm.hpp"

#include <cstring>
#include <limits>

#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

double as_stored(double x, Precision precision) {
    if (precision == Precision::fp32) return x;
    return precision == Precision::fp16 ? rounded(x, 11, -24) : rounded(x, 8, -133);
}

struct Case {
    size_t M, N, K;
    char a_layout, b_layout;  // N: as it is, T: stored transposed
    Precision precision;
    bool accumulate, bias;
    bool both_ways = false;  // factors packed and read in place: the same bits
};

void check_case(const Case& c) {
    constexpr size_t PADDING = 3;  // floats between the rows of C, which must stay as they are
    const auto [M, N, K] = std::tuple(c.M, c.N, c.K);
    const size_t ldc = N + PADDING;
    const Floats a = numbers(M * K), b = numbers(K * N), bias = numbers(N), old = numbers(M * ldc);
    const View a_mk = c.a_layout == 'N' ? View{a.data(), K, 1} : View{a.data(), 1, M};
    const View b_kn = c.b_layout == 'N' ? View{b.data(), N, 1} : View{b.data(), 1, K};
    Doubles want = wide(old);
    Floats start = old;
    for (size_t m = 0; m < M; ++m)
        for (size_t n = 0; n < N; ++n) {
            double total = (c.accumulate ? old[m * ldc + n] : 0) + (c.bias ? bias[n] : 0);
            for (size_t k = 0; k < K; ++k)
                total += as_stored(a[m * a_mk.row + k * a_mk.col], c.precision) *
                         as_stored(b[k * b_kn.row + n * b_kn.col], c.precision);
            want[m * ldc + n] = total;
            if (!c.accumulate) start[m * ldc + n] = std::numeric_limits<float>::quiet_NaN();
        }
    const std::string name = "gemm " + std::string{c.a_layout, c.b_layout} + ' ' + std::to_string(M) + 'x' +
                             std::to_string(N) + 'x' + std::to_string(K) + " precision " +
                             std::to_string(static_cast<int>(c.precision));
    const auto multiply = [&](float* out) {
        Precision precision = c.precision;
        if (precision == Precision::bf16_pairs && !bf16_pairs_can_run()) precision = Precision::bf16;
        gemm(out, ldc, a_mk, b_kn, c.bias ? bias.data() : nullptr, c.accumulate, M, N, K, precision);
    };
    check(name, 1e-5, {{want, start}}, [&](const std::vector<float*>& out) {
        multiply(out[0]);
        if (!c.both_ways) return;
        const bool usual = reads_far_lines();
        Floats other = start;
        set_reads_far_lines(!usual);
        multiply(other.data());
        set_reads_far_lines(usual);
        if (std::memcmp(out[0], other.data(), other.size() * sizeof(float)))
            out[0][0] = std::numeric_limits<float>::quiet_NaN();
    });
}

void check_column_sums() {
    constexpr size_t R = 21, C = 37, LD = 40;
    const Floats x = numbers(R * LD), start = numbers(C);
    Doubles want = wide(start);
    for (size_t r = 0; r < R; ++r)
        for (size_t c = 0; c < C; ++c) want[c] += x[r * LD + c];
    check("column sums", 1e-6, {{want, start}},
          [&](const std::vector<float*>& out) { gemm_kernels().column_sums(out[0], x.data(), LD, R, C); });
}

}  // namespace

void check_gemm() {
    // One element, edges of the register tile, few rows (dot products), more than one part of k, work for many threads.
    constexpr size_t SIZES[][3] = {{1, 1, 1}, {3, 5, 7}, {4, 70, 33}, {15, 33, 2}, {29, 49, 515}, {131, 97, 130}};
    constexpr const char* LAYOUTS[] = {"NN", "NT", "TN", "TT"};
    constexpr Precision PRECISIONS[] = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::bf16_pairs};
    for (const auto& [M, N, K] : SIZES)
        for (const char* layout : LAYOUTS)
            for (Precision precision : PRECISIONS)
                for (bool accumulate : {false, true})
                    check_case({M, N, K, layout[0], layout[1], precision, accumulate, !accumulate});
    check_case({5, 3, 0, 'N', 'N', Precision::fp32, false, true});  // no terms: the bias alone
    check_case({64, 48, 1100, 'T', 'N', Precision::fp32, true, true});
    // Whole panels of B and columns of A
    check_case({97, 96, 600, 'N', 'N', Precision::fp32, false, true, true});
    check_case({97, 96, 600, 'T', 'N', Precision::fp32, true, false, true});
    check_case({29, 49, 515, 'T', 'T', Precision::fp32, true, false, true});
    check_column_sums();
}

}  // namespace chainrule::tests
