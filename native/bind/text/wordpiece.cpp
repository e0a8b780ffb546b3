#include "text/wordpiece.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/text/texts.hpp"

namespace chainrule {
namespace {

nb::object missing(const BertTable& self, nb::bytes text) {
    const std::string_view characters = utf8(text);
    return as_array(without_gil([&] { return self.missing(characters); }));
}

void add_character(BertTable& self, uint32_t code, nb::bytes replacement) {
    if (code >= CODES) throw std::invalid_argument("a code that is not a character");
    const std::string_view bytes = utf8(replacement);
    WithoutGil release;
    self.add(code, bytes);
}

void make_encoder(WordPieceEncoder* self, std::shared_ptr<BertTable> table, nb::bytes tokens, Offsets ends,
                  nb::bytes prefix, int32_t unknown, size_t most) {
    new (self) WordPieceEncoder(std::move(table), as_vocabulary(tokens, ends), view(prefix), unknown, most);
}

nb::list train(const WordPieceTrainer& self, size_t limit, int64_t least) {
    return as_list(without_gil([&] { return self.train(limit, least); }));
}

}  // namespace

void bind_wordpiece(nb::module_& m) {
    nb::class_<BertTable>(m, "BertTable")
        .def("__init__", [](BertTable* self) { new (self) BertTable(); })
        .def("missing", &missing, "text"_a)
        .def("add", &add_character, "code"_a, "replacement"_a);
    nb::class_<WordPieceEncoder>(m, "WordPieceEncoder")
        .def("__init__", &make_encoder, "table"_a, "tokens"_a, "ends"_a.noconvert(), "prefix"_a, "unknown"_a, "most"_a)
        .def("encode", [](const WordPieceEncoder& self, nb::bytes text) { return encode_text(self, utf8(text)); },
             "text"_a);
    nb::class_<WordPieceTrainer>(m, "WordPieceTrainer")
        .def("__init__", [](WordPieceTrainer* self, std::shared_ptr<BertTable> table, nb::bytes prefix) {
            new (self) WordPieceTrainer(std::move(table), std::string(view(prefix)));
        }, "table"_a, "prefix"_a)
        .def("add", &add_utf8<WordPieceTrainer>, "texts"_a, "ends"_a.noconvert())
        .def("counts", &counts_of<WordPieceTrainer>)
        .def("add_counts", &add_counts<WordPieceTrainer>, "words"_a, "ends"_a.noconvert(), "counts"_a.noconvert())
        .def("alphabet", [](const WordPieceTrainer& self) { return as_list(self.alphabet()); })
        .def("train", &train, "limit"_a, "least"_a);
}

}  // namespace chainrule
