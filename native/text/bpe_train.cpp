#include "text/bpe.hpp"

namespace chainrule {

BpeTrainer::BpeTrainer(std::shared_ptr<const Classes> classes, Pattern pattern)
    : classes_(std::move(classes)), pattern_(pattern) {}

void BpeTrainer::add(const std::vector<Span>& texts) {
    counts_.add(texts, [this](Span part, auto each) {
        for_words(*classes_, pattern_, part, [&](Bytes begin, Bytes end) { each(as_text(begin, end)); });
    });
}

std::vector<Merge> BpeTrainer::train(const uint8_t* bytes_in_order, size_t limit, int64_t least) const {
    std::array<int32_t, 256> id_of;
    for (int32_t id = 0; id < 256; ++id) id_of[bytes_in_order[id]] = id;
    Merger merger(counts_.total(), byte_spelling(id_of));
    return most_frequent_first(
        merger, 256, limit, least, [](TokenPair a, TokenPair b) { return a < b; },
        [](TokenPair, int32_t) { return true; });
}

}  // namespace chainrule
