#include "bpe.hpp"

#include <nanobind/stl/shared_ptr.h>

#include "arrays.hpp"

namespace chainrule {
namespace {

using Ints = Array<const int32_t, 1>;
using Table = Array<const int32_t, 2>;
using Offsets = Array<const int64_t, 1>;

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

Span span(const nb::bytes& bytes) {
    const Bytes begin = reinterpret_cast<Bytes>(bytes.c_str());
    return {begin, begin + bytes.size()};
}

Pattern as_pattern(int index) {
    if (index < 0 || index > 2) throw std::invalid_argument("pattern must be 0 (gpt2), 1 (gpt4) or 2 (llama3)");
    return static_cast<Pattern>(index);
}

// The vector as an array of NumPy, which owns it: nothing is copied.
template <class Scalar>
nb::object as_array(std::vector<Scalar>&& values, size_t columns = 0) {
    auto* kept = new std::vector<Scalar>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Scalar>*>(p); });
    const size_t shape[2] = {columns ? kept->size() / columns : kept->size(), columns};
    return nb::cast(nb::ndarray<nb::numpy, Scalar>(kept->data(), columns ? 2 : 1, shape, owner));
}

nb::object merge_rows(const std::vector<Merge>& merges) {  // (n, 4): left, right, merged, priority
    std::vector<int32_t> rows;
    rows.reserve(4 * merges.size());
    for (const Merge& m : merges) rows.insert(rows.end(), {m.left, m.right, m.merged, m.priority});
    return as_array(std::move(rows), 4);
}

// Offsets as the ends of consecutive stretches of `size` bytes.
std::vector<int64_t> checked_ends(const Offsets& ends, size_t size) {
    int64_t last = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
        if (ends.data()[i] < last) throw std::invalid_argument("ends must not fall");
        last = ends.data()[i];
    }
    if (static_cast<size_t>(last) != size) throw std::invalid_argument("the last end must be the length of the bytes");
    return {ends.data(), ends.data() + ends.size()};
}

Vocabulary as_vocabulary(const nb::bytes& bytes, const Offsets& ends) {
    return {std::string(view(bytes)), checked_ends(ends, bytes.size())};
}

std::shared_ptr<Classes> make_classes(Table ranges) {
    if (ranges.shape(1) != 3) throw std::invalid_argument("ranges must have three columns");
    return std::make_shared<Classes>(ranges.data(), ranges.shape(0));
}

nb::object split(std::shared_ptr<Classes> classes, int pattern, nb::bytes text) {
    std::vector<int64_t> ends;
    const Span all = span(text);
    {
        WithoutGil release;
        for_words(*classes, as_pattern(pattern), all, [&](Bytes, Bytes end) { ends.push_back(end - all.first); });
    }
    return as_array(std::move(ends));
}

nb::object rank_merges(nb::bytes tokens, Offsets ends) {
    return merge_rows(merges_of_ranks(as_vocabulary(tokens, ends)));
}

void make_encoder(BpeEncoder* self, std::shared_ptr<Classes> classes, int pattern, nb::bytes tokens, Offsets ends,
                  Table merges, Ints special, bool whole_words) {
    Vocabulary vocabulary = as_vocabulary(tokens, ends);
    const int32_t size = static_cast<int32_t>(vocabulary.size());
    if (merges.shape(1) != 4) throw std::invalid_argument("merges must have four columns");
    std::vector<Merge> rows;
    for (size_t i = 0; i < merges.shape(0); ++i) {
        const int32_t* m = merges.data() + 4 * i;
        for (int column = 0; column < 3; ++column)
            if (m[column] < 0 || m[column] >= size) throw std::invalid_argument("a merge of a token that is not there");
        if (m[3] < 0 || m[3] == INT32_MAX) throw std::invalid_argument("a priority outside its range");
        rows.push_back({m[0], m[1], m[2], m[3]});
    }
    new (self) BpeEncoder(std::move(classes), as_pattern(pattern), std::move(vocabulary), rows,
                          {special.data(), special.data() + special.size()}, whole_words);
}

nb::object encode(const BpeEncoder& self, nb::bytes text) {
    std::vector<int32_t> ids;
    const std::string_view bytes = view(text);
    {
        WithoutGil release;
        ids = self.encode(bytes);
    }
    return as_array(std::move(ids));
}

nb::bytes decode(const BpeEncoder& self, Ints ids) {
    for (size_t i = 0; i < ids.size(); ++i)
        if (ids.data()[i] < 0 || static_cast<size_t>(ids.data()[i]) >= self.size())
            throw std::invalid_argument("an id that is no token");
    std::string text;
    {
        WithoutGil release;
        text = self.decode(ids.data(), ids.size());
    }
    return nb::bytes(text.data(), text.size());
}

void add(BpeTrainer& self, nb::bytes texts, Offsets ends) {
    std::vector<Span> spans;
    Bytes begin = span(texts).first;
    const Bytes first = begin;
    for (const int64_t end : checked_ends(ends, texts.size())) {
        spans.emplace_back(begin, first + end);
        begin = first + end;
    }
    WithoutGil release;
    self.add(spans);
}

nb::object train(const BpeTrainer& self, nb::bytes bytes_in_order, size_t limit, int64_t least) {
    if (bytes_in_order.size() != 256) throw std::invalid_argument("there are 256 bytes");
    std::vector<Merge> merges;
    {
        WithoutGil release;
        merges = self.train(span(bytes_in_order).first, limit, least);
    }
    return merge_rows(merges);
}

}  // namespace

void bind_bpe(nb::module_& m) {
    nb::class_<Classes>(m, "CharacterClasses");
    m.def("character_classes", &make_classes, "ranges"_a.noconvert());
    m.def("split_words", &split, "classes"_a, "pattern"_a, "text"_a);
    m.def("bpe_rank_merges", &rank_merges, "tokens"_a, "ends"_a.noconvert());
    nb::class_<BpeEncoder>(m, "BpeEncoder")
        .def("__init__", &make_encoder, "classes"_a, "pattern"_a, "tokens"_a, "ends"_a.noconvert(),
             "merges"_a.noconvert(), "special"_a.noconvert(), "whole_words"_a)
        .def("encode", &encode, "text"_a)
        .def("decode", &decode, "ids"_a.noconvert());
    nb::class_<BpeTrainer>(m, "BpeTrainer")
        .def("__init__", [](BpeTrainer* self, std::shared_ptr<Classes> classes, int pattern) {
            new (self) BpeTrainer(std::move(classes), as_pattern(pattern));
        }, "classes"_a, "pattern"_a)
        .def("add", &add, "texts"_a, "ends"_a.noconvert())
        .def("train", &train, "bytes_in_order"_a, "limit"_a, "least"_a);
}

}  // namespace chainrule
