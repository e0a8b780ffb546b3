#include "text/bpe.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "bind/text/texts.hpp"

namespace chainrule {
namespace {

Pattern checked_pattern(const Classes& classes, int index) {
    if (index < 0 || index > (classes.expressions ? 3 : 2))
        throw std::invalid_argument("pattern must be 0 (gpt2), 1 (gpt4), 2 (llama3), or 3 for classes with expressions");
    return static_cast<Pattern>(index);
}

nb::object merge_rows(const std::vector<Merge>& merges) {  // (n, 4): left, right, merged, priority
    std::vector<int32_t> rows;
    rows.reserve(4 * merges.size());
    for (const Merge& m : merges) rows.insert(rows.end(), {m.left, m.right, m.merged, m.priority});
    return as_array(std::move(rows), 4);
}

std::shared_ptr<Classes> make_classes(Table ranges) {
    if (ranges.shape(1) != 3) throw std::invalid_argument("ranges must have three columns");
    return std::make_shared<Classes>(ranges.data(), ranges.shape(0));
}

std::shared_ptr<Classes> make_expressions(Table ranges, Array<const uint64_t, 1> sets, Table code, Table alternatives,
                                          Array<const uint8_t, 2> begins) {
    const size_t count = alternatives.shape(0);
    if (sets.size() != 256 || code.shape(1) != 5 || alternatives.shape(1) != 2 || begins.size() != 256 * count)
        throw std::invalid_argument("sets of 256 kinds, rows of 5 and 2 numbers, and 256 kinds for each alternative");
    std::shared_ptr<Classes> classes = make_classes(ranges);
    const auto* first = reinterpret_cast<const Expressions::Instruction*>(code.data());
    classes->expressions = std::make_shared<Expressions>(
        sets.data(), std::vector<Expressions::Instruction>(first, first + code.shape(0)), alternatives.data(),
        begins.data(), count);
    return classes;
}

nb::object split(std::shared_ptr<Classes> classes, int pattern, nb::bytes text) {
    std::vector<int64_t> ends;
    const Span all = span(view(text));
    const Pattern checked = checked_pattern(*classes, pattern);
    without_gil([&] {
        for_words(*classes, checked, all, [&](Bytes, Bytes end) { ends.push_back(end - all.first); });
    });
    return as_array(std::move(ends));
}

nb::object rank_merges(nb::bytes tokens, Offsets ends) {
    return merge_rows(merges_of_ranks(as_vocabulary(tokens, ends)));
}

std::vector<Merge> checked_merges(const Table& merges, size_t vocab_size) {
    if (merges.shape(1) != 4) throw std::invalid_argument("merges must have four columns");
    const int32_t size = static_cast<int32_t>(vocab_size);
    std::vector<Merge> rows;
    rows.reserve(merges.shape(0));
    for (size_t i = 0; i < merges.shape(0); ++i) {
        const int32_t* m = merges.data() + 4 * i;
        for (int column = 0; column < 3; ++column)
            if (m[column] < 0 || m[column] >= size) throw std::invalid_argument("a merge of a token that does not exist");
        if (m[3] < 0 || m[3] == INT32_MAX) throw std::invalid_argument("a priority outside its range");
        rows.push_back({m[0], m[1], m[2], m[3]});
    }
    return rows;
}

// Encoding a text never gives a token in `special`; decoding accepts it.
void make_encoder(BpeEncoder* self, std::shared_ptr<Classes> classes, int pattern, nb::bytes tokens, Offsets ends,
                  Table merges, Ints special, bool whole_words) {
    Vocabulary vocabulary = as_vocabulary(tokens, ends);
    const size_t size = vocabulary.size();
    const std::vector<Merge> rows = checked_merges(merges, size);
    std::vector<bool> ordinary(size, true);
    for (size_t i = 0; i < special.size(); ++i) ordinary.at(static_cast<size_t>(special.data()[i])) = false;
    std::array<int32_t, 256> id_of_byte;
    id_of_byte.fill(-1);
    for (size_t id = 0; id < size; ++id)
        if (ordinary[id] && vocabulary[id].size() == 1)
            id_of_byte[static_cast<uint8_t>(vocabulary[id][0])] = static_cast<int32_t>(id);
    const Pattern checked = checked_pattern(*classes, pattern);
    new (self) BpeEncoder(std::move(classes), checked, std::move(vocabulary), rows, byte_spelling(id_of_byte),
                          Order::ONE_PAIR);
    for (size_t id = 0; whole_words && id < size; ++id)
        if (ordinary[id]) self->take_whole(id);
}

// characters (n, 2): code point and id. Others become `unknown`; words end in the token `end` if it is not negative.
BpeEncoder* make_textbook_encoder(std::shared_ptr<Classes> classes, Table characters, Table merges, int32_t end,
                               int32_t unknown) {
    if (characters.shape(1) != 2) throw std::invalid_argument("characters must have two columns");
    CharacterSpelling spelling(classes, end, unknown);
    for (size_t i = 0; i < characters.shape(0); ++i) {
        const int32_t* row = characters.data() + 2 * i;
        if (row[0] < 0 || row[1] < 0) throw std::invalid_argument("a character or its id is negative");
        spelling.add(static_cast<uint32_t>(row[0]), row[1]);
    }
    return new BpeEncoder(classes, Pattern::TEXTBOOK, {}, checked_merges(merges, INT32_MAX), std::move(spelling),
                          Order::ALL_PAIRS);
}

nb::bytes decode(const BpeEncoder& self, Ints ids) {
    for (size_t i = 0; i < ids.size(); ++i)
        if (ids.data()[i] < 0 || static_cast<size_t>(ids.data()[i]) >= self.size())
            throw std::invalid_argument("an id that is not a token");
    const std::string text = without_gil([&] { return self.decode(ids.data(), ids.size()); });
    return nb::bytes(text.data(), text.size());
}

void add_bytes(BpeTrainer& self, nb::bytes texts, Offsets ends) {
    const std::vector<Span> found = spans(view(texts), ends);
    WithoutGil release;
    self.add(found);
}

nb::object train(const BpeTrainer& self, nb::bytes bytes_in_order, size_t limit, int64_t least) {
    if (bytes_in_order.size() != 256) throw std::invalid_argument("there are 256 bytes");
    return merge_rows(without_gil([&] { return self.train(span(view(bytes_in_order)).first, limit, least); }));
}

nb::object train_textbook(const TextbookBpeTrainer& self, size_t limit, const std::vector<nb::bytes>& never) {
    const std::vector<std::string> names = strings(never);
    return merge_rows(without_gil([&] { return self.train(limit, names); }));
}

}  // namespace

void bind_bpe(nb::module_& m) {
    nb::class_<Classes>(m, "CharacterClasses");
    def(m, "character_classes", make_classes, "ranges");
    def(m, "expression_classes", make_expressions, "ranges", "sets", "code", "alternatives", "begins");
    def(m, "split_words", split, "classes", "pattern", "text");
    def(m, "bpe_rank_merges", rank_merges, "tokens", "ends");
    nb::class_<BpeEncoder>(m, "BpeEncoder")
        .def("__init__", &make_encoder, "classes"_a, "pattern"_a, "tokens"_a, "ends"_a.noconvert(),
             "merges"_a.noconvert(), "special"_a.noconvert(), "whole_words"_a)
        .def("encode", [](const BpeEncoder& self, nb::bytes text) { return encode_text(self, view(text)); }, "text"_a)
        .def("decode", &decode, "ids"_a.noconvert());
    nb::class_<BpeTrainer>(m, "BpeTrainer")
        .def("__init__", [](BpeTrainer* self, std::shared_ptr<Classes> classes, int pattern) {
            const Pattern checked = checked_pattern(*classes, pattern);
            new (self) BpeTrainer(std::move(classes), checked);
        }, "classes"_a, "pattern"_a)
        .def("add", &add_bytes, "texts"_a, "ends"_a.noconvert())
        .def("counts", &counts_of<BpeTrainer>)
        .def("add_counts", &add_counts<BpeTrainer>, "words"_a, "ends"_a.noconvert(), "counts"_a.noconvert())
        .def("train", &train, "bytes_in_order"_a, "limit"_a, "least"_a);
    m.def("textbook_bpe_encoder", &make_textbook_encoder, nb::rv_policy::take_ownership, "classes"_a,
          "characters"_a.noconvert(), "merges"_a.noconvert(), "end"_a, "unknown"_a);
    nb::class_<TextbookBpeTrainer>(m, "TextbookBpeTrainer")
        .def("__init__", [](TextbookBpeTrainer* self, std::shared_ptr<Classes> classes, nb::bytes end_mark) {
            new (self) TextbookBpeTrainer(std::move(classes), std::string(view(end_mark)));
        }, "classes"_a, "end_mark"_a)
        .def("add", &add_utf8<TextbookBpeTrainer>, "texts"_a, "ends"_a.noconvert())
        .def("characters", [](const TextbookBpeTrainer& self) {
            return as_array(std::vector<int32_t>(self.characters()));
        })
        .def("train", &train_textbook, "limit"_a, "never"_a);
}

}  // namespace chainrule
