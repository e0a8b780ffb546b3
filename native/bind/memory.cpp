#include "runtime/memory.hpp"

#include "bind/arrays.hpp"
#include "ops/elementwise.hpp"

namespace chainrule {
namespace {

// Memory as a Python buffer, for NumPy arrays.
struct Block {
    explicit Block(size_t count) : bytes(count) {
        if (Recording* recording = Recording::active()) {
            data = recording->allocate(count);
            memory = recording->memory();
        } else {
            data = allocate(count);
        }
        if (!data) throw std::bad_alloc();
    }
    ~Block() { memory ? memory->release(data) : release(data); }
    Block(const Block&) = delete;
    const size_t bytes;
    void* data;
    std::shared_ptr<Allocator> memory;  // that of a recording; null for that of all
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

// y = x, of one shape and any strides.
void copy(nb::ndarray<float, nb::device::cpu> y, nb::ndarray<const float, nb::device::cpu> x) {
    const size_t axes = x.ndim(), last = axes ? axes - 1 : 0, C = axes ? x.shape(last) : 1;
    bool fits = y.ndim() == axes;
    for (size_t axis = 0; fits && axis < axes; ++axis) fits = y.shape(axis) == x.shape(axis);
    if (!fits) throw std::invalid_argument("x and y differ in shape");
    const auto row = [last](const auto& array, size_t r) {  // its place
        ptrdiff_t place = 0;
        for (size_t axis = last; axis-- > 0; r /= array.shape(axis))
            place += static_cast<ptrdiff_t>(r % array.shape(axis)) * array.stride(axis);
        return place;
    };
    const ptrdiff_t y_step = axes ? y.stride(last) : 1, x_step = axes ? x.stride(last) : 1;
    float* y_data = y.data();
    const float* x_data = x.data();
    WithoutGil release;
    for_rows(C ? x.size() / C : 0, C, [&](size_t first, size_t rows) {
        for (size_t r = first; r < first + rows; ++r) {
            float* to = y_data + row(y, r);
            const float* from = x_data + row(x, r);
            for (size_t c = 0; c < C; ++c, to += y_step, from += x_step) *to = *from;
        }
    });
}

PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

void bind_memory(nb::module_& m) {
    nb::class_<Block>(m, "Block", nb::type_slots(slots)).def(nb::init<size_t>(), "bytes"_a);
    def(m, "clear", clear, "x");
    def(m, "copy", copy, "y", "x");
    def(m, "held_bytes", held_bytes);
    def(m, "give_back", give_back);
}

}  // namespace chainrule
