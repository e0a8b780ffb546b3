#include "text/words.hpp"

#include <nanobind/stl/shared_ptr.h>

#include "bind/text/texts.hpp"

namespace chainrule {
namespace {

WordRule as_rule(int index) {
    if (index < 0 || index > 1) throw std::invalid_argument("rule must be 0 (words and marks) or 1 (letters)");
    return static_cast<WordRule>(index);
}

nb::list most_frequent(const WordCounter& self, int64_t least, size_t limit) {
    return as_list(without_gil([&] { return self.most_frequent(least, limit); }));
}

}  // namespace

void bind_words(nb::module_& m) {
    nb::class_<WordCounter>(m, "WordCounter")
        .def("__init__", [](WordCounter* self, std::shared_ptr<Classes> classes, int rule) {
            new (self) WordCounter(std::move(classes), as_rule(rule));
        }, "classes"_a, "rule"_a)
        .def("add", &add_utf8<WordCounter>, "texts"_a, "ends"_a.noconvert())
        .def("most_frequent", &most_frequent, "least"_a, "limit"_a);
    nb::class_<WordEncoder>(m, "WordEncoder")
        .def("__init__", [](WordEncoder* self, std::shared_ptr<Classes> classes, int rule, nb::bytes words,
                            Offsets ends, Ints ids, int32_t unknown) {
            new (self) WordEncoder(std::move(classes), as_rule(rule), as_vocabulary(words, ends),
                                   {ids.data(), ids.data() + ids.size()}, unknown);
        }, "classes"_a, "rule"_a, "words"_a, "ends"_a.noconvert(), "ids"_a.noconvert(), "unknown"_a)
        .def("encode", [](const WordEncoder& self, nb::bytes text) { return encode_text(self, utf8(text)); },
             "text"_a);
}

}  // namespace chainrule
