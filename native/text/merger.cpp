#include "text/merger.hpp"

#include <stdexcept>

namespace chainrule {

uint32_t PairNumbers::of(TokenPair pair) {
    if (2 * count_ >= slots_.size()) grow();
    Slot& slot = slots_[place(pair)];
    if (slot.number == NONE) slot = {pair, count_++};
    return slot.number;
}

size_t PairNumbers::place(TokenPair pair) const {
    const uint64_t key = static_cast<uint64_t>(pair.left) << 32 | static_cast<uint32_t>(pair.right);
    size_t i = (key ^ key >> 29) * 0x9E3779B97F4A7C15u >> shift_;
    while (slots_[i].number != NONE && !(slots_[i].pair == pair)) i = (i + 1) & (slots_.size() - 1);
    return i;
}

void PairNumbers::grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old)
        if (slot.number != NONE) slots_[place(slot.pair)] = slot;
}

Merger::Merger(const WordCounts& words, const Spelling& spelling) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < words.words.size(); ++i) bytes += words.words.key(i).size();
    for (auto* column : {&before_, &after_, &word_}) column->reserve(bytes);
    token_.reserve(bytes);
    std::vector<int32_t> tokens;
    for (uint32_t i = 0; i < words.words.size(); ++i) {
        spelling(words.words.key(i), tokens);
        add_word(tokens, words.counts[i]);
    }
}

void Merger::add_word(const std::vector<int32_t>& tokens, int64_t count) {
    if (token_.size() + tokens.size() >= NONE) throw std::length_error("the distinct words have more than 4 GB");
    const uint32_t first = static_cast<uint32_t>(token_.size()), word = static_cast<uint32_t>(times_.size());
    const uint32_t size = static_cast<uint32_t>(tokens.size());
    times_.push_back(count);
    for (uint32_t i = 0; i < size; ++i) {
        token_.push_back(tokens[i]);
        before_.push_back(i > 0 ? first + i - 1 : NONE);
        after_.push_back(i + 1 < size ? first + i + 1 : NONE);
        word_.push_back(word);
    }
    for (uint32_t i = 0; i + 1 < size; ++i) appear(first + i);
}

int64_t Merger::merge(uint32_t number, int32_t merged) {
    const TokenPair pair = pair_[number];
    const std::vector<uint32_t> places = std::move(places_[number]);
    int64_t done = 0;
    for (const uint32_t i : places) {
        if (token_[i] < 0 || after_[i] == NONE || !(pair_at(i) == pair)) continue;  // it is gone
        const uint32_t gone = after_[i];
        if (before_[i] != NONE) vanish(before_[i]);
        if (after_[gone] != NONE) vanish(gone);
        token_[i] = merged;
        token_[gone] = -1;
        after_[i] = after_[gone];
        if (after_[i] != NONE) {
            before_[after_[i]] = i;
            appear(i);
        }
        if (before_[i] != NONE) appear(before_[i]);
        done += times_[word_[i]];
    }
    count_[number] = 0;
    return done;
}

void Merger::appear(uint32_t i) {
    const TokenPair pair = pair_at(i);
    const uint32_t number = numbers_.of(pair);
    if (number == pair_.size()) {
        pair_.push_back(pair);
        count_.push_back(0);
        places_.emplace_back();
        fresh_.push_back(number);
    }
    count_[number] += times_[word_[i]];
    places_[number].push_back(i);
}

}  // namespace chainrule
