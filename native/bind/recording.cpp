#include "runtime/recording.hpp"

#include <nanobind/stl/string.h>

#include "bind/arrays.hpp"

namespace chainrule {
namespace {

using Any = nb::ndarray<nb::ro, nb::device::cpu>;  // of any type, shape and strides

void replay(Recording& recording, uint64_t seed, uint64_t step, uint64_t part) {
    WithoutGil release;
    recording.replay({seed, step, part});
}

}  // namespace

void bind_recording(nb::module_& m) {
    nb::class_<Recording>(m, "Recording")
        .def(nb::init<>())
        .def("beside", [](const Recording& recording) { return new Recording(recording.memory()); })
        .def("begin", [](Recording& recording, uint64_t seed, uint64_t step, uint64_t part, bool records) {
            recording.begin({seed, step, part}, records);
        }, "seed"_a, "step"_a, "part"_a, "records"_a)
        .def("end", &Recording::end)
        .def("know", [](Recording& recording, const Any& x) {
            const Extent extent(x);
            recording.know(extent.data, extent.bytes);
        }, "x"_a.noconvert())
        .def("knows", [](const Recording& recording, const Any& x) {
            const Extent extent(x);
            return recording.knows(extent.data, extent.bytes);
        }, "x"_a.noconvert())
        .def("guard", [](Recording& recording, const Any& x) {
            const Extent extent(x);
            recording.guard(extent.data, extent.bytes);
        }, "x"_a.noconvert())
        .def_prop_ro("touched", &Recording::touched)
        .def("fail", &Recording::fail, "reason"_a)
        .def("replay", &replay, "seed"_a, "step"_a, "part"_a)
        .def_prop_ro("broken", &Recording::broken)
        .def_prop_ro("calls", &Recording::calls)
        .def_prop_ro("bytes", &Recording::bytes);
}

}  // namespace chainrule
