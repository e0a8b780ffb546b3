#include "ops/recurrent.hpp"

#include <tuple>

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

enum class Shape { STATES, STATE, WEIGHTS, BIAS };  // (B, T, g H), (B, g H), (g H, H), (g H,) of g gates

struct Operand {
    const char* name;
    Shape shape;
    size_t gates = 1;
    bool entered = false;  // holds values on entry that the loop reads, whether it writes there or not
};

struct Sizes {
    size_t B, T, H;

    template <class A>  // B, T and H are those of the first array of states without gates
    void take(const std::optional<A>& array, const Operand& operand) {
        if (H || operand.shape != Shape::STATES || operand.gates != 1) return;
        if (!array || array->ndim() != 3) throw std::invalid_argument(std::string(operand.name) + " must be (B, T, H)");
        B = array->shape(0), T = array->shape(1), H = array->shape(2);
    }

    template <class A>
    auto pointer(const std::optional<A>& array, const Operand& operand) const {
        if (!array && operand.shape != Shape::BIAS) throw std::invalid_argument(std::string(operand.name) + " is None");
        const size_t rows = operand.shape == Shape::STATES  ? B * T
                            : operand.shape == Shape::STATE ? B
                            : operand.shape == Shape::BIAS  ? 1
                                                            : H;
        return pointer_or_null(array, operand.name, rows * operand.gates * H);
    }
};

// loop(an array for each operand ..., B, T, H)
template <class... Args, size_t... I, class... Operands>
void bind_loop(nb::module_& m, const char* function, void (*loop)(Args...), std::index_sequence<I...>,
               Operands... operands) {
    using All = std::tuple<Args...>;
    const auto run = [=](const std::optional<Flat<std::remove_pointer_t<std::tuple_element_t<I, All>>>>&... arrays) {
        Sizes size{};
        (size.take(arrays, operands), ...);
        ((operands.entered ? reads_too(function, arrays) : void()), ...);
        const std::tuple pointers{size.pointer(arrays, operands)...};  // checked from left to right
        WithoutGil release;
        loop(std::get<I>(pointers)..., size.B, size.T, size.H);
    };
    m.def(
        function,
        [=](std::optional<Flat<std::remove_pointer_t<std::tuple_element_t<I, All>>>>... arrays) {
            call_recorded(function, run, arrays...);
        },
        nb::arg(operands.name).noconvert().none()...);
}

template <class... Args, class... Operands>
void bind_loop(nb::module_& m, const char* function, void (*loop)(Args...), Operands... operands) {
    bind_loop(m, function, loop, std::make_index_sequence<sizeof...(Args) - 3>(), operands...);
}

}  // namespace

void bind_recurrent(nb::module_& m) {
    const Operand y{"y", Shape::STATES}, dy{"dy", Shape::STATES}, cells{"cells", Shape::STATES}, un{"u_n", Shape::STATES};
    const Operand h{"h", Shape::STATE}, c{"c", Shape::STATE}, dh{"dh", Shape::STATE, 1, true}, dc{"dc", Shape::STATE, 1, true};
    const auto da = [](size_t gates) { return Operand{"da", Shape::STATES, gates}; };
    const auto W = [](size_t gates) { return Operand{"W", Shape::WEIGHTS, gates}; };
    const auto gates = [](size_t count) { return Operand{"gates", Shape::STATES, count, true}; };
    const Operand bias{"bias", Shape::BIAS, 3};

    bind_loop(m, "rnn_forward", rnn_forward, Operand{"y", Shape::STATES, 1, true}, h, W(1));
    bind_loop(m, "rnn_backward", rnn_backward, da(1), dh, y, W(1), dy);
    bind_loop(m, "lstm_forward", lstm_forward, y, cells, gates(4), h, c, W(4));
    bind_loop(m, "lstm_backward", lstm_backward, da(4), dh, dc, gates(4), cells, c, W(4), dy);
    bind_loop(m, "gru_forward", gru_forward, y, gates(3), h, W(3));
    bind_loop(m, "gru_backward", gru_backward, da(3), dh, gates(3), y, h, W(3), dy);
    bind_loop(m, "gru_after_forward", gru_after_forward, y, gates(3), un, h, W(3), bias);
    bind_loop(m, "gru_after_backward", gru_after_backward, da(4), dh, gates(3), un, y, h, W(3), dy);
}

}  // namespace chainrule
