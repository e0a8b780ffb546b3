// The Python module chainrule._native. Each family of kernels binds itself in its own file.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "bind/arrays.hpp"
#include "families.hpp"  // made by CMake: CHAINRULE_FAMILIES(X) is X(layernorm) ..., one for each other file here
#include "runtime/isa.hpp"
#include "sources.hpp"  // made by CMake: CHAINRULE_SOURCES, a hash of the files of native/

namespace chainrule {

#define X(family) void bind_##family(nb::module_& m);
CHAINRULE_FAMILIES(X)
#undef X

namespace {

std::atomic<int> under_way{0};
std::atomic<bool> closing{false};
std::thread::id closer;  // the thread that ends the interpreter

// Registered with atexit, which comes before the interpreter starts to stop its threads.
void wait_for_kernels() {
    closer = std::this_thread::get_id();
    closing = true;
    nb::gil_scoped_release release;
    while (under_way > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

// Counted before the GIL is let go: `closing` changes under it, so nobody slips by between the two.
WithoutGil::WithoutGil() {
    ++under_way;
    const bool late = closing && std::this_thread::get_id() != closer;
    if (late) --under_way;
    state_ = PyEval_SaveThread();
    while (late) pause();
}

WithoutGil::~WithoutGil() {
    PyEval_RestoreThread(state_);
    --under_way;
}

namespace {

std::string isa_name() {
    size_t count;
    return isas(&count)[current_isa()].name;
}

std::vector<std::string> supported_isas() {
    size_t count;
    const Isa* table = isas(&count);
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i)
        if (table[i].supported) names.emplace_back(table[i].name);
    return names;
}

}  // namespace
}  // namespace chainrule

NB_MODULE(_native, m) {
    using namespace chainrule;
    pthread_atfork(nullptr, nullptr, [] { under_way = 0; });  // a child has none of the threads that were under way
    nb::set_leak_warnings(false);  // an array that lives until the end is no leak
    m.attr("sources") = CHAINRULE_SOURCES;
    m.def("isa", &isa_name);
    m.def("isas", &supported_isas);
    m.def("set_isa", [](const std::string& name) { return set_isa(name.c_str()); }, "name"_a);
    m.def("set_threads", &set_threads, "count"_a);
    m.def("get_threads", &get_threads);
#define X(family) bind_##family(m);
    CHAINRULE_FAMILIES(X)
#undef X
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&wait_for_kernels));
}
