#include "runtime/memory.hpp"

#include "bind/arrays.hpp"
#include "ops/elementwise.hpp"

namespace chainrule {
namespace {

// Memory as a Python buffer, for NumPy arrays.
struct Block {
    explicit Block(size_t count) : bytes(count), data(allocate(count)) {
        if (!data) throw std::bad_alloc();
    }
    ~Block() { release(data); }
    Block(const Block&) = delete;
    const size_t bytes;
    void* const data;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    const Block* block = nb::inst_ptr<Block>(self);
    return PyBuffer_FillInfo(view, self, block->data, static_cast<Py_ssize_t>(block->bytes), 0, flags);
}

void clear(Flat<float> x) {
    float* data = x.data();
    WithoutGil release;
    const bool large = x.size() >= 1 << 22;  // 16 MB: more than a cache would keep
    for_rows(x.size(), 1, [=](size_t first, size_t count) {
        large ? elementwise().clear_large(data + first, count)
              : void(__builtin_memset(data + first, 0, count * sizeof *data));
    });
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

void bind_memory(nb::module_& m) {
    nb::class_<Block>(m, "Block", nb::type_slots(slots)).def(nb::init<size_t>(), "bytes"_a);
    def(m, "clear", clear, "x");
    def(m, "held_bytes", held_bytes);
    def(m, "give_back", give_back);
}

}  // namespace chainrule
