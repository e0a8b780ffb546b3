#include "ops/recurrent.hpp"

#include "tests/check.hpp"

namespace chainrule::tests {
namespace {

enum class Cell { rnn, lstm, gru, gru_after };

size_t gates_of(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::lstm ? 4 : 3; }

struct Sequence {  // what one sequence gives, all steps
    Doubles y, cells, gates, un;
};

// Row g of h W_hᵀ.
double product(const Doubles& w, const double* h, size_t g, size_t H) {
    double total = 0;
    for (size_t j = 0; j < H; ++j) total += w[g * H + j] * h[j];
    return total;
}

// From a = x W_xᵀ + b of every step, and the state before the first one.
Sequence plain(Cell cell, const double* a_tg, Doubles h, Doubles c, const Doubles& w, const Doubles& bias, size_t T,
               size_t H) {
    const size_t G = gates_of(cell) * H;
    Sequence s{Doubles(T * H), Doubles(T * H), Doubles(T * G), Doubles(T * H)};
    for (size_t t = 0; t < T; ++t) {
        const double* a = a_tg + t * G;
        double* gate = &s.gates[t * G];
        const auto u = [&](size_t g) { return product(w, h.data(), g, H) + (bias.empty() ? 0 : bias[g]); };
        Doubles next(H), reset(H);
        for (size_t j = 0; j < H && cell != Cell::rnn && cell != Cell::lstm; ++j) {
            gate[j] = sigmoid(a[j] + u(j));
            gate[H + j] = sigmoid(a[H + j] + u(H + j));
            reset[j] = gate[j] * h[j];
        }
        for (size_t j = 0; j < H; ++j) {
            if (cell == Cell::rnn) {
                next[j] = gate[j] = std::tanh(a[j] + u(j));
            } else if (cell == Cell::lstm) {
                for (size_t g = 0; g < 4; ++g)
                    gate[g * H + j] = g == 2 ? std::tanh(a[g * H + j] + u(g * H + j)) : sigmoid(a[g * H + j] + u(g * H + j));
                c[j] = gate[H + j] * c[j] + gate[j] * gate[2 * H + j];
                next[j] = gate[3 * H + j] * std::tanh(c[j]);
            } else {
                const double z = gate[H + j];
                s.un[t * H + j] = u(2 * H + j);
                const double through = cell == Cell::gru ? product(w, reset.data(), 2 * H + j, H) : gate[j] * u(2 * H + j);
                const double n = gate[2 * H + j] = std::tanh(a[2 * H + j] + through);
                next[j] = cell == Cell::gru ? (1 - z) * h[j] + z * n : (1 - z) * n + z * h[j];
            }
        }
        h = next;
        std::copy(h.begin(), h.end(), s.y.begin() + t * H);
        std::copy(c.begin(), c.end(), s.cells.begin() + t * H);
    }
    return s;
}

struct Inputs {
    Cell cell;
    size_t B, T, H, G = gates_of(cell) * H;
    Floats a = numbers(B * T * G, -2, 2), h = numbers(B * H), c = numbers(B * H), w = numbers(G * H, -0.5, 0.5);
    Floats bias = numbers(cell == Cell::gru_after ? G : 0), dy = numbers(B * T * H), dh = numbers(B * H), dc = numbers(B * H);
};

Doubles part(const Floats& x, size_t b, size_t n) { return {x.begin() + b * n, x.begin() + (b + 1) * n}; }

struct Wanted {
    Doubles y, cells, gates, un, da, dh, dc;
};

void append(Doubles& to, const Doubles& from) { to.insert(to.end(), from.begin(), from.end()); }

Wanted wanted(const Inputs& in) {
    const auto [T, H] = std::pair(in.T, in.H);
    const Doubles w = wide(in.w), bias = wide(in.bias);
    Wanted want;
    for (size_t b = 0; b < in.B; ++b) {
        const Doubles a = part(in.a, b, T * in.G), h = part(in.h, b, H), c = part(in.c, b, H);
        const Doubles dy = part(in.dy, b, T * H), dh = part(in.dh, b, H), dc = part(in.dc, b, H);
        const auto loss = [&](const Doubles& a, const Doubles& h, const Doubles& c) {
            const Sequence s = plain(in.cell, a.data(), h, c, w, bias, T, H);
            double total = sum_of_products(s.y, dy);
            for (size_t j = 0; j < H; ++j)
                total += dh[j] * s.y[(T - 1) * H + j] + (in.cell == Cell::lstm ? dc[j] * s.cells[(T - 1) * H + j] : 0);
            return total;
        };
        const Sequence s = plain(in.cell, a.data(), h, c, w, bias, T, H);
        append(want.y, s.y);
        append(want.cells, s.cells);
        append(want.gates, s.gates);
        append(want.un, s.un);
        append(want.da, gradient(a, [&](const Doubles& at) { return loss(at, h, c); }));
        append(want.dh, gradient(h, [&](const Doubles& at) { return loss(a, at, c); }));
        append(want.dc, gradient(c, [&](const Doubles& at) { return loss(a, h, at); }));
    }
    return want;
}

void check_rnn(const Inputs& in, const Wanted& want) {
    const auto [B, T, H] = std::tuple(in.B, in.T, in.H);
    check("rnn", 2e-6, {{want.y, in.a}},
          [&](const std::vector<float*>& out) { rnn_forward(out[0], in.h.data(), in.w.data(), B, T, H); });
    const Floats y = narrow(want.y);
    check("rnn backward", 1e-5, {{want.da}, {want.dh, in.dh}}, [&](const std::vector<float*>& out) {
        rnn_backward(out[0], out[1], y.data(), in.w.data(), in.dy.data(), B, T, H);
    });
}

void check_lstm(const Inputs& in, const Wanted& want) {
    const auto [B, T, H] = std::tuple(in.B, in.T, in.H);
    check("lstm", 2e-6, {{want.y}, {want.cells}, {want.gates, in.a}}, [&](const std::vector<float*>& out) {
        lstm_forward(out[0], out[1], out[2], in.h.data(), in.c.data(), in.w.data(), B, T, H);
    });
    const Floats gates = narrow(want.gates), cells = narrow(want.cells);
    check("lstm backward", 1e-5, {{want.da}, {want.dh, in.dh}, {want.dc, in.dc}}, [&](const std::vector<float*>& out) {
        lstm_backward(out[0], out[1], out[2], gates.data(), cells.data(), in.c.data(), in.w.data(), in.dy.data(), B, T, H);
    });
}

void check_gru(const Inputs& in, const Wanted& want) {
    const auto [B, T, H] = std::tuple(in.B, in.T, in.H);
    check("gru", 2e-6, {{want.y}, {want.gates, in.a}}, [&](const std::vector<float*>& out) {
        gru_forward(out[0], out[1], in.h.data(), in.w.data(), B, T, H);
    });
    const Floats gates = narrow(want.gates), y = narrow(want.y);
    check("gru backward", 1e-5, {{want.da}, {want.dh, in.dh}}, [&](const std::vector<float*>& out) {
        gru_backward(out[0], out[1], gates.data(), y.data(), in.h.data(), in.w.data(), in.dy.data(), B, T, H);
    });
}

// da of this cell has a fourth part, the gradient of u_n = h W_nᵀ + b_n: forward was n = tanh(a_n + r u_n).
Doubles with_fourth_part(const Inputs& in, const Wanted& want) {
    const size_t H = in.H;
    Doubles da;
    for (size_t i = 0; i < in.B * in.T; ++i) {
        const double *three = &want.da[i * 3 * H], *reset = &want.gates[i * 3 * H];
        da.insert(da.end(), three, three + 3 * H);
        for (size_t j = 0; j < H; ++j) da.push_back(three[2 * H + j] * reset[j]);
    }
    return da;
}

void check_gru_after(const Inputs& in, const Wanted& want) {
    const auto [B, T, H] = std::tuple(in.B, in.T, in.H);
    check("gru, reset after", 2e-6, {{want.y}, {want.gates, in.a}, {want.un}}, [&](const std::vector<float*>& out) {
        gru_after_forward(out[0], out[1], out[2], in.h.data(), in.w.data(), in.bias.data(), B, T, H);
    });
    const Floats gates = narrow(want.gates), un = narrow(want.un), y = narrow(want.y);
    check("gru, reset after, backward", 1e-5, {{with_fourth_part(in, want)}, {want.dh, in.dh}},
          [&](const std::vector<float*>& out) {
              gru_after_backward(out[0], out[1], gates.data(), un.data(), y.data(), in.h.data(), in.w.data(), in.dy.data(),
                                 B, T, H);
          });
}

}  // namespace

void check_recurrent() {
    constexpr void (*CHECKS[])(const Inputs&, const Wanted&) = {check_rnn, check_lstm, check_gru, check_gru_after};
    for (Cell cell : {Cell::rnn, Cell::lstm, Cell::gru, Cell::gru_after})
        for (const auto& [B, T, H] : {std::tuple<size_t, size_t, size_t>{1, 1, 1}, {3, 4, 19}, {37, 2, 5}}) {
            const Inputs in{cell, B, T, H};
            CHECKS[static_cast<int>(cell)](in, wanted(in));
        }
}

}  // namespace chainrule::tests
