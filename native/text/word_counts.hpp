// How often each word occurs: the first step of training any tokenizer.
#pragma once

#include "runtime/pool.hpp"
#include "text/pretokenize.hpp"
#include "runtime/free_list.hpp"
#include "text/strings.hpp"

namespace chainrule {

struct WordCounts {
    void add(std::string_view word, int64_t count = 1) {
        const uint32_t number = words.add(word);
        if (number == counts.size()) counts.push_back(0);
        counts[number] += count;
    }
    Numbering words;
    std::vector<int64_t> counts;
};

// Counts of the words of texts, made by all threads; the sums do not depend on which thread counted a word.
class TextCounts {
public:
    // split(part, each) must call each(word) for every word of a part of a text
    template <class Split>
    void add(const std::vector<Span>& texts, const Split& split) {
        std::vector<Span> parts;
        for (const Span& text : texts)
            for (const Span& part : split_for_threads(text)) parts.push_back(part);
        std::vector<size_t> blocks{0};  // short texts are joined until a block is worth a thread
        for (size_t i = 0, bytes = 0; i < parts.size(); ++i) {
            bytes += static_cast<size_t>(parts[i].second - parts[i].first);
            if (bytes < (1 << 17) && i + 1 < parts.size()) continue;
            blocks.push_back(i + 1);
            bytes = 0;
        }
        parallel_for(blocks.size() - 1, [&](size_t block) {
            FreeList<WordCounts>::Handle counts(counts_);
            for (size_t i = blocks[block]; i < blocks[block + 1]; ++i)
                split(parts[i], [&](std::string_view word) { (*counts).add(word); });
        });
    }

    // Words that were counted elsewhere.
    void add(const WordCounts& counted) {
        FreeList<WordCounts>::Handle counts(counts_);
        for (uint32_t i = 0; i < counted.words.size(); ++i) (*counts).add(counted.words.key(i), counted.counts[i]);
    }

    // In no particular order; training must not depend on it.
    WordCounts total() const {
        WordCounts all;
        for (const auto& part : counts_.all())
            for (uint32_t i = 0; i < part->words.size(); ++i) all.add(part->words.key(i), part->counts[i]);
        return all;
    }

private:
    FreeList<WordCounts> counts_;
};

}  // namespace chainrule
