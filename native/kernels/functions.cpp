#include "functions.hpp"

#include "vecmath.hpp"

namespace chainrule::CHAINRULE_LEVEL {
namespace {

template <Vec function(Vec)>
void map(float* y_n, const float* x_n, size_t n) {
    const size_t whole = n - n % LANES;
    for (size_t i = 0; i < whole; i += LANES) store(y_n + i, function(load(x_n + i)));
    if (whole < n) store_some(y_n + whole, function(load_some(x_n + whole, n - whole)), n - whole);
}

Vec exp_(Vec x) { return exp(x); }
Vec tanh_(Vec x) { return tanh(x); }
Vec sigmoid_(Vec x) { return sigmoid(x); }
Vec normal_cdf_(Vec x) {
    Vec gauss;
    return normal_cdf(x, &gauss);
}

}  // namespace

const Functions functions = {map<exp_>, map<tanh_>, map<sigmoid_>, map<normal_cdf_>};

}  // namespace chainrule::CHAINRULE_LEVEL
