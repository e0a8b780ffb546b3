// Every family of kernels on this CPU:  kernels [--plant]
//
// With --plant each check gets one wrong number, off by 1 % of the largest, and must notice it. (Where a check tolerates
// more than that, because a format rounds to a few bits, by twice the tolerance.)
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

#include "runtime/pool.hpp"
#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

bool plant = false;
size_t checks = 0, failures = 0;
uint64_t state = 1;

uint32_t next_random() {  // Knuth's MMIX generator, its upper half
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 32);
}

double size_of(const Output& output) {
    return std::max(output.terms, largest_of(output.want));
}

using Arrays = std::vector<Floats>;

Arrays outputs_of(const std::vector<Output>& outputs, double tolerance,
                  const std::function<void(const std::vector<float*>&)>& run) {
    Arrays arrays;
    std::vector<float*> out;
    for (const Output& output : outputs) {
        const Floats empty(output.want.size(), std::numeric_limits<float>::quiet_NaN());
        arrays.push_back(output.start.empty() ? empty : output.start);
    }
    for (Floats& array : arrays) out.push_back(array.data());
    run(out);
    const double wrong = std::max(1e-2, 2 * tolerance) * size_of(outputs[0]) + 1e-30;
    if (plant) arrays[0][arrays[0].size() / 2] += static_cast<float>(wrong);
    return arrays;
}

bool same_bits(const Arrays& a, const Arrays& b) {
    for (size_t i = 0; i < a.size(); ++i)
        if (std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) return false;
    return true;
}

// The first element that is too far off, as a sentence; empty if there is none.
std::string mistake(const Arrays& got, const std::vector<Output>& outputs, double tolerance) {
    for (size_t i = 0; i < got.size(); ++i) {
        const double bound = tolerance * size_of(outputs[i]);
        for (size_t j = 0; j < got[i].size(); ++j) {
            const double want = outputs[i].want[j];
            if (std::fabs(got[i][j] - want) <= bound) continue;  // false for NaN
            char text[160];
            std::snprintf(text, sizeof text, "output %zu, element %zu is %.9g, must be %.9g within %.2g", i, j,
                          static_cast<double>(got[i][j]), want, bound);
            return text;
        }
    }
    return "";
}

}  // namespace

double largest_of(const Doubles& x) {
    double most = 0;
    for (double value : x) most = std::max(most, std::fabs(value));
    return most;
}

Floats numbers(size_t n, double low, double high) {
    Floats x(n);
    for (float& value : x) value = static_cast<float>(low + (high - low) * next_random() / 4294967296.0);
    return x;
}

std::vector<int64_t> ids(size_t n, size_t below) {
    std::vector<int64_t> found(n);
    for (int64_t& id : found) id = next_random() % below;
    return found;
}

Doubles gradient(Doubles x, const std::function<double(const Doubles&)>& loss) {
    constexpr double STEP = 1e-5;
    Doubles slope(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        const double center = x[i];
        x[i] = center + STEP;
        const double above = loss(x);
        x[i] = center - STEP;
        slope[i] = (above - loss(x)) / (2 * STEP);
        x[i] = center;
    }
    return slope;
}

void check(const std::string& name, double tolerance, const std::vector<Output>& outputs,
           const std::function<void(const std::vector<float*>&)>& run, Bits bits) {
    size_t count;
    const Isa* const all = isas(&count);
    Arrays reference;
    for (size_t i = 0; i < count; ++i) {
        if (!set_isa(all[i].name)) continue;
        if (bits == Bits::of_an_isa) reference.clear();
        for (int threads : {1, 2, 3}) {
            set_threads(threads);
            const Arrays got = outputs_of(outputs, tolerance, run);
            std::string wrong = mistake(got, outputs, tolerance);
            if (wrong.empty() && !reference.empty() && !same_bits(got, reference)) wrong = "other bits than before";
            if (reference.empty()) reference = got;
            ++checks;
            failures += !wrong.empty();
            if (wrong.empty() == plant)
                std::fprintf(stderr, "%s (%s, %d threads): %s\n", name.c_str(), all[i].name, threads,
                             plant ? "a planted mistake went unnoticed" : wrong.c_str());
        }
    }
}

uint32_t random_word(const uint64_t (&key)[5], uint64_t position) {
    uint64_t counter[4] = {position / 8 + 1, key[2], key[3], key[4]}, weyl[2] = {key[0], key[1]};
    for (int round = 0; round < 10; ++round) {
        const auto a = static_cast<unsigned __int128>(0xD2E7470EE14C6C93u) * counter[0];
        const auto b = static_cast<unsigned __int128>(0xCA5A826395121157u) * counter[2];
        const uint64_t next[4] = {static_cast<uint64_t>(b >> 64) ^ counter[1] ^ weyl[0], static_cast<uint64_t>(b),
                                  static_cast<uint64_t>(a >> 64) ^ counter[3] ^ weyl[1], static_cast<uint64_t>(a)};
        std::memcpy(counter, next, sizeof next);
        weyl[0] += 0x9E3779B97F4A7C15u;
        weyl[1] += 0xBB67AE8584CAA73Bu;
    }
    const uint64_t pair = counter[position % 8 / 2];
    return static_cast<uint32_t>(position % 2 ? pair >> 32 : pair);
}

double rounded(double x, int digits, int least) {
    if (x == 0) return 0;
    const double step = std::ldexp(1, std::max(std::ilogb(x) - digits + 1, least));
    return std::nearbyint(x / step) * step;
}

}  // namespace chainrule::tests

int main(int count, char** arguments) {
    using namespace chainrule::tests;
    plant = count > 1 && std::strcmp(arguments[1], "--plant") == 0;
    check_gemm();
    check_attention();
    check_elementwise();
    check_norms();
    check_losses();
    check_recurrent();
    check_optimizers();
    check_pooling();
    check_embedding();
    check_word2vec();
    check_panels();
    check_cache();
    check_memory();
    size_t isas_count;
    const chainrule::Isa* const all = chainrule::isas(&isas_count);
    std::printf("kernels on");
    for (size_t i = 0; i < isas_count; ++i)
        if (all[i].supported) std::printf(" %s", all[i].name);
    std::printf(": %zu checks, %zu %s\n", checks, failures, plant ? "planted mistakes noticed" : "failed");
    return failures != (plant ? checks : 0);
}
