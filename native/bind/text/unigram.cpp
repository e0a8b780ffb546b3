#include "text/unigram.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/text/texts.hpp"

namespace chainrule {
namespace {

void make_encoder(UnigramEncoder* self, const std::vector<nb::bytes>& pieces, std::vector<int32_t> ids,
                  std::vector<double> scores, int32_t unknown, const std::vector<int32_t>& bytes, bool by_units) {
    if (ids.size() != pieces.size() || scores.size() != pieces.size())
        throw std::invalid_argument("pieces, ids and scores must have the same length");
    if (!bytes.empty() && bytes.size() != 256) throw std::invalid_argument("bytes must be 256 ids, or none");
    std::vector<std::string> sorted = strings(pieces);
    for (size_t i = 0; i < sorted.size(); ++i)
        if (sorted[i].empty() || (i && sorted[i - 1] >= sorted[i]))
            throw std::invalid_argument("pieces must be sorted, distinct and not empty");
    std::array<int32_t, 256> byte_ids;
    byte_ids.fill(-1);
    std::copy(bytes.begin(), bytes.end(), byte_ids.begin());
    new (self) UnigramEncoder(std::move(sorted), std::move(ids), std::move(scores), unknown, byte_ids, by_units);
}

nb::tuple train(const UnigramTrainer& trainer, size_t pieces, double coverage, size_t seeds, size_t most_letters,
                double shrink, int iterations) {
    if (most_letters < 1 || most_letters > 16) throw std::invalid_argument("most_letters must be 1 to 16");
    const UnigramPieces result = without_gil([&] {
        return trainer.train({pieces, coverage, seeds, most_letters, shrink, iterations});
    });
    return nb::make_tuple(as_list(result.pieces), result.scores);
}

}  // namespace

void bind_unigram(nb::module_& m) {
    nb::class_<UnigramEncoder>(m, "UnigramEncoder")
        .def("__init__", &make_encoder, "pieces"_a, "ids"_a, "scores"_a, "unknown"_a, "bytes"_a, "by_units"_a)
        .def("encode", [](UnigramEncoder& self, nb::bytes text) { return encode_text(self, utf8(text)); }, "text"_a);
    nb::class_<UnigramTrainer>(m, "UnigramTrainer")
        .def(nb::init<>())
        .def("add", [](UnigramTrainer& self, const nb::bytes& text) { self.add(utf8(text)); }, "text"_a)
        .def("counts", &counts_of<UnigramTrainer>)
        .def("add_counts", &add_counts<UnigramTrainer>, "words"_a, "ends"_a.noconvert(), "counts"_a.noconvert())
        .def("train", &train, "pieces"_a, "coverage"_a, "seeds"_a, "most_letters"_a, "shrink"_a, "iterations"_a);
}

}  // namespace chainrule
