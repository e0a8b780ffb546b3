#include "text/words.hpp"

#include <stdexcept>

namespace chainrule {

void WordCounter::add(const std::vector<Span>& texts) {
    counts_.add(texts, [this](Span part, auto each) {
        for_words(*classes_, rule_, part, [&](Bytes begin, Bytes end) { each(as_text(begin, end)); });
    });
}

std::vector<std::string> WordCounter::most_frequent(int64_t least, size_t limit) const {
    const WordCounts all = counts_.total();
    std::vector<std::pair<int64_t, std::string_view>> found;  // negative counts, so that the most frequent sort first
    for (uint32_t i = 0; i < all.words.size(); ++i)
        if (all.counts[i] >= least) found.emplace_back(-all.counts[i], all.words.key(i));
    if (limit < found.size()) {
        std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(limit), found.end());
        found.resize(limit);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> words;
    for (const auto& [count, word] : found) words.emplace_back(word);
    return words;
}

WordEncoder::WordEncoder(std::shared_ptr<const Classes> classes, WordRule rule, const Vocabulary& words,
                         std::vector<int32_t> ids, int32_t unknown)
    : classes_(std::move(classes)), rule_(rule), ids_(std::move(ids)), unknown_(unknown) {
    if (ids_.size() != words.size()) throw std::invalid_argument("words and ids must have the same length");
    for (size_t i = 0; i < words.size(); ++i)
        if (words_.add(words[i]) != i) throw std::invalid_argument("words must be distinct");
}

std::vector<int32_t> WordEncoder::encode(std::string_view text) const {
    return encode_parallel(text, caches_, [this](Span piece, WordCache& cache, std::vector<int32_t>& out) {
        for_words(*classes_, rule_, piece, [&](Bytes begin, Bytes end) {
            const std::string_view word = as_text(begin, end);
            cache.append(out, begin, word.size(), piece.second, [&](std::vector<int32_t>& ids) {
                const uint32_t number = words_.find(word);
                ids.assign(1, number == ~0u ? unknown_ : ids_[number]);
            });
        });
    });
}

}  // namespace chainrule
