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

std::atomic<int> running{0};
std::atomic<bool> closing{false};
std::thread::id closer;  // the thread that ends the interpreter

// Registered with atexit, which runs before the interpreter stops its threads.
void wait_for_kernels() {
    closer = std::this_thread::get_id();
    closing = true;
    nb::gil_scoped_release release;
    while (running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

// Counted before the GIL is released: `closing` changes under the GIL, so no kernel is missed.
WithoutGil::WithoutGil() : state_(nullptr) {
    if (Recording::replaying()) return;
    ++running;
    const bool late = closing && std::this_thread::get_id() != closer;
    if (late) --running;
    state_ = PyEval_SaveThread();
    while (late) pause();
}

WithoutGil::~WithoutGil() {
    if (!state_) return;
    PyEval_RestoreThread(state_);
    --running;
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
    pthread_atfork(nullptr, nullptr, [] { running = 0; });  // a forked child has none of the running threads
    nb::set_leak_warnings(false);  // an array that lives until exit is not a leak
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
