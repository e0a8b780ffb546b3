// What the bindings of the tokenizers share: bytes in, arrays out.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bind/arrays.hpp"
#include "text/bpe.hpp"

namespace chainrule {

using Ints = Array<const int32_t, 1>;
using Table = Array<const int32_t, 2>;
using Offsets = Array<const int64_t, 1>;

inline std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

inline std::string_view utf8(const nb::bytes& text) {
    if (!whole_characters(view(text))) throw std::invalid_argument("text must be UTF-8");
    return view(text);
}

inline Span span(std::string_view bytes) {
    const Bytes begin = reinterpret_cast<Bytes>(bytes.data());
    return {begin, begin + bytes.size()};
}

// Offsets as the ends of consecutive strings of `size` bytes in all.
inline std::vector<int64_t> checked_ends(const Offsets& ends, size_t size) {
    int64_t last = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
        if (ends.data()[i] < last) throw std::invalid_argument("ends must not decrease");
        last = ends.data()[i];
    }
    if (static_cast<size_t>(last) != size) throw std::invalid_argument("the last end must be the length of the bytes");
    return {ends.data(), ends.data() + ends.size()};
}

inline std::vector<Span> spans(std::string_view texts, const Offsets& ends) {
    std::vector<Span> found;
    Bytes begin = span(texts).first;
    const Bytes first = begin;
    for (const int64_t end : checked_ends(ends, texts.size())) {
        found.emplace_back(begin, first + end);
        begin = first + end;
    }
    return found;
}

inline Vocabulary as_vocabulary(const nb::bytes& bytes, const Offsets& ends) {
    return {std::string(view(bytes)), checked_ends(ends, bytes.size())};
}

inline std::vector<std::string> strings(const std::vector<nb::bytes>& list) {
    std::vector<std::string> out;
    for (const nb::bytes& item : list) out.emplace_back(view(item));
    return out;
}

inline nb::list as_list(const std::vector<std::string>& strings) {
    nb::list list;
    for (const std::string& item : strings) list.append(nb::bytes(item.data(), item.size()));
    return list;
}

// Adds texts to a trainer.
template <class Trainer>
void add_utf8(Trainer& trainer, nb::bytes texts, Offsets ends) {
    const std::vector<Span> found = spans(utf8(texts), ends);
    WithoutGil release;
    trainer.add(found);
}

// The vector as a NumPy array that owns it, without a copy.
template <class Scalar>
nb::object as_array(std::vector<Scalar>&& values, size_t columns = 0) {
    auto* kept = new std::vector<Scalar>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Scalar>*>(p); });
    const size_t shape[2] = {columns ? kept->size() / columns : kept->size(), columns};
    return nb::cast(nb::ndarray<nb::numpy, Scalar>(kept->data(), columns ? 2 : 1, shape, owner));
}

// What a trainer has counted: the words joined, where each ends, and the counts.
template <class Trainer>
nb::tuple counts_of(const Trainer& trainer) {
    std::string words;
    std::vector<int64_t> ends, counts;
    without_gil([&] {
        const WordCounts& all = trainer.counts();
        for (uint32_t i = 0; i < all.words.size(); ++i) {
            words += all.words.key(i);
            ends.push_back(static_cast<int64_t>(words.size()));
            counts.push_back(all.counts[i]);
        }
    });
    return nb::make_tuple(nb::bytes(words.data(), words.size()), as_array(std::move(ends)), as_array(std::move(counts)));
}

// Adds what another trainer has counted.
template <class Trainer>
void add_counts(Trainer& trainer, nb::bytes words, Offsets ends, Offsets counts) {
    if (ends.size() != counts.size()) throw std::invalid_argument("there must be a count for each word");
    const std::vector<Span> found = spans(view(words), ends);
    WithoutGil release;
    WordCounts counted;
    for (size_t i = 0; i < found.size(); ++i) {
        const char* begin = reinterpret_cast<const char*>(found[i].first);
        counted.add({begin, static_cast<size_t>(found[i].second - found[i].first)}, counts.data()[i]);
    }
    trainer.add(counted);
}

// The ids of a text.
template <class Encoder>
nb::object encode_text(Encoder& encoder, std::string_view text) {
    return as_array(without_gil([&] { return encoder.encode(text); }));
}

}  // namespace chainrule
