// How a call of a bound kernel is recorded: with each array as a view that owns nothing, so that Python may free the
// array and its memory may serve later calls of the recording, and with each constant as it is.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <vector>

#include "runtime/recording.hpp"

namespace chainrule {

namespace nb = nanobind;

// The words that name a random stream (random.py). A replay draws from the streams of its own step.
struct Key {
    std::array<uint64_t, 5> words;
    uint64_t operator[](size_t i) const { return words[i]; }
};

// The memory of an array, from its lowest element to behind its highest one.
struct Extent {
    template <class A>
    explicit Extent(const A& array) : data(static_cast<const char*>(static_cast<const void*>(array.data()))), bytes(0) {
        if (!array.size()) return;
        ptrdiff_t lowest = 0, highest = 0;
        for (size_t axis = 0; axis < array.ndim(); ++axis) {
            const ptrdiff_t last = static_cast<ptrdiff_t>(array.shape(axis) - 1) * array.stride(axis);
            (last < 0 ? lowest : highest) += last;
        }
        const auto size = static_cast<ptrdiff_t>(array.itemsize());
        data += lowest * size;
        bytes = static_cast<size_t>((highest - lowest + 1) * size);
    }
    const char* data;
    size_t bytes;
};

// body(data, bytes) for each stretch of memory that the array fills without gaps.
template <class A, class Body>
void for_stretches(const A& array, Body&& body) {
    if (!array.size()) return;
    struct Axis {
        ptrdiff_t step;
        size_t count;
    };
    std::vector<Axis> axes;
    const char* lowest = static_cast<const char*>(static_cast<const void*>(array.data()));
    for (size_t i = 0; i < array.ndim(); ++i) {
        const ptrdiff_t step = array.stride(i) * static_cast<ptrdiff_t>(array.itemsize());
        if (step < 0) lowest += step * static_cast<ptrdiff_t>(array.shape(i) - 1);
        if (step && array.shape(i) > 1) axes.push_back({std::abs(step), array.shape(i)});
    }
    std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.step < b.step; });
    size_t bytes = array.itemsize(), inner = 0, stretches = 1;
    while (inner < axes.size() && axes[inner].step == static_cast<ptrdiff_t>(bytes)) bytes *= axes[inner++].count;
    for (size_t i = inner; i < axes.size(); ++i) stretches *= axes[i].count;
    for (size_t number = 0; number < stretches; ++number) {
        const char* data = lowest;
        for (size_t i = inner, left = number; i < axes.size(); left /= axes[i++].count)
            data += static_cast<ptrdiff_t>(left % axes[i].count) * axes[i].step;
        body(data, bytes);
    }
}

template <class T>
struct Recordable {  // a constant
    static void read(Recording&, const char*, const T&) {}
    static void written(Recording&, const char*, const T&) {}
    static T kept(const T& value) { return value; }
    static const T& now(const Recording&, const T& value) { return value; }
};

template <class... Options>
struct Recordable<nb::ndarray<Options...>> {
    using Type = nb::ndarray<Options...>;
    static void read(Recording& recording, const char* kernel, const Type& array) {
        const Extent extent(array);
        if constexpr (Type::ReadOnly) recording.reads(kernel, extent.data, extent.bytes);
    }
    static void written(Recording& recording, const char* kernel, const Type& array) {
        if constexpr (!Type::ReadOnly)
            for_stretches(array, [&](const char* data, size_t bytes) { recording.writes(kernel, data, bytes); });
    }
    static Type kept(const Type& array) {
        std::vector<size_t> shape(array.ndim());
        std::vector<int64_t> strides(array.ndim());
        for (size_t axis = 0; axis < array.ndim(); ++axis)
            shape[axis] = array.shape(axis), strides[axis] = array.stride(axis);
        return Type(array.data(), array.ndim(), shape.data(), nb::handle(), strides.data(), array.dtype());
    }
    static const Type& now(const Recording&, const Type& array) { return array; }
};

template <class A>
struct Recordable<std::optional<A>> {
    using Type = std::optional<A>;
    static void read(Recording& recording, const char* kernel, const Type& array) {
        if (array) Recordable<A>::read(recording, kernel, *array);
    }
    static void written(Recording& recording, const char* kernel, const Type& array) {
        if (array) Recordable<A>::written(recording, kernel, *array);
    }
    static Type kept(const Type& array) { return array ? Type(Recordable<A>::kept(*array)) : std::nullopt; }
    static const Type& now(const Recording&, const Type& array) { return array; }
};

template <>
struct Recordable<Key> {
    static constexpr Key NONE{};  // of a kernel that draws nothing
    static bool drawn(const Key& key) { return key.words != NONE.words; }
    static void read(Recording& recording, const char* kernel, const Key& key) {
        if (drawn(key)) recording.draws(kernel, key.words.data());
    }
    static void written(Recording&, const char*, const Key&) {}
    static Key kept(const Key& key) { return key; }
    static Key now(const Recording& recording, Key key) {
        if (drawn(key)) key.words[2] = recording.position().step, key.words[4] = recording.position().part;
        return key;
    }
};

// A kernel adds to this array, or reads it otherwise before it writes there.
template <class... Options>
void reads_too(const char* kernel, const nb::ndarray<Options...>& array) {
    const Extent extent(array);
    if (Recording* recording = Recording::recording()) recording->reads(kernel, extent.data, extent.bytes);
}
template <class A>
void reads_too(const char* kernel, const std::optional<A>& array) {
    if (array) reads_too(kernel, *array);
}

// function(args...), kept in the recording of this thread if there is one. What returns a value cannot be repeated:
// Python has seen the value.
template <class Function, class... Args>
auto call_recorded(const char* name, const Function& function, const Args&... args) {
    using Result = std::invoke_result_t<const Function&, const Args&...>;
    Recording* recording = Recording::recording();
    if constexpr (!std::is_void_v<Result>) {
        if (recording) recording->fail(std::string(name) + " returns a value to Python");
        return function(args...);
    } else {
        function(args...);
        if (!recording) return;
        (Recordable<Args>::read(*recording, name, args), ...);
        (Recordable<Args>::written(*recording, name, args), ...);
        if (!recording->broken().empty()) return;
        recording->add([function, recording, kept = std::make_tuple(Recordable<Args>::kept(args)...)] {
            std::apply([&](const auto&... arg) { function(Recordable<Args>::now(*recording, arg)...); }, kept);
        });
    }
}

// The same as a function to be bound.
template <class Result, class... Args>
auto recordable(const char* name, Result (*function)(Args...)) {
    return [=](std::decay_t<Args>... args) -> Result { return call_recorded(name, function, args...); };
}

}  // namespace chainrule

namespace nanobind::detail {

template <>
struct type_caster<chainrule::Key> {
    using Words = make_caster<std::array<uint64_t, 5>>;
    NB_TYPE_CASTER(chainrule::Key, Words::Name)

    bool from_python(handle source, uint8_t flags, cleanup_list* cleanup) noexcept {
        Words words;
        if (!words.from_python(source, flags, cleanup)) return false;
        value.words = words.value;
        return true;
    }
};

}  // namespace nanobind::detail
