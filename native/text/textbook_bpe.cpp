#include <algorithm>
#include <tuple>

#include "text/bpe.hpp"

namespace chainrule {

CharacterSpelling::CharacterSpelling(std::shared_ptr<const Classes> classes, int32_t end, int32_t unknown)
    : classes_(std::move(classes)), end_(end), unknown_(unknown) {
    std::fill_n(ascii_, 128, unknown);
}

void CharacterSpelling::add(uint32_t code, int32_t id) { (code < 128 ? ascii_[code] : others_[code]) = id; }

void CharacterSpelling::operator()(std::string_view word, std::vector<int32_t>& ids) const {
    ids.clear();
    const Bytes begin = reinterpret_cast<Bytes>(word.data()), end = begin + word.size();
    for (Bytes p = begin; p < end;) {
        const size_t size = std::min(utf8_size(*p), static_cast<size_t>(end - p));
        if (*p < 128) {
            ids.push_back(ascii_[*p]);
        } else {
            const auto known = others_.find(utf8_code(p, size));
            ids.push_back(known == others_.end() ? unknown_ : known->second);
        }
        p += size;
    }
    if (end_ >= 0 && classes_->read(begin, end).kind != SPACE) ids.push_back(end_);
}

TextbookBpeTrainer::TextbookBpeTrainer(std::shared_ptr<const Classes> classes, std::string end_mark)
    : classes_(std::move(classes)), end_mark_(std::move(end_mark)), marked_(end_mark_.empty()) {}

void TextbookBpeTrainer::add(const std::vector<Span>& texts) {
    for (const Span& text : texts) collect(text);
    counts_.add(texts, [this](Span part, auto each) {
        for_words(*classes_, Pattern::TEXTBOOK, part, [&](Bytes begin, Bytes end) { each(as_text(begin, end)); });
    });
}

void TextbookBpeTrainer::collect(Span text) {
    bool in_word = false;
    auto mark = [&] {  // at the end of the first word
        if (in_word && !marked_) characters_.push_back(END);
        marked_ |= in_word;
    };
    for (Bytes p = text.first; p < text.second;) {
        const size_t size = std::min(utf8_size(*p), static_cast<size_t>(text.second - p));
        const uint32_t code = utf8_code(p, size);
        if (!marked_) {
            const bool space = classes_->read(p, text.second).kind == SPACE;
            if (space) mark();
            in_word = !space;
        }
        if (!seen_[code]) characters_.push_back(static_cast<int32_t>(code));
        seen_[code] = true;
        p += size;
    }
    mark();
}

std::vector<Merge> TextbookBpeTrainer::train(size_t limit, const std::vector<std::string>& never) const {
    const int32_t alphabet = static_cast<int32_t>(characters_.size());
    const auto mark = std::find(characters_.begin(), characters_.end(), END);
    const bool marked = mark != characters_.end();
    CharacterSpelling spelling(classes_, marked ? static_cast<int32_t>(mark - characters_.begin()) : -1, alphabet);
    std::vector<std::string> texts;  // of the tokens
    for (int32_t id = 0; id < alphabet; ++id) {
        const int32_t code = characters_[id];
        texts.push_back(code == END ? end_mark_ : utf8_character(static_cast<uint32_t>(code)));
        if (code != END) spelling.add(static_cast<uint32_t>(code), id);
    }
    Merger merger(counts_.total(), spelling);
    auto first = [&](TokenPair a, TokenPair b) {  // in alphabetical order
        return std::tie(texts[a.left], texts[a.right]) < std::tie(texts[b.left], texts[b.right]);
    };
    auto wanted = [&](TokenPair pair, int32_t) {
        std::string merged = texts[pair.left] + texts[pair.right];
        if (std::find(never.begin(), never.end(), merged) != never.end()) return false;
        texts.push_back(std::move(merged));
        return true;
    };
    return most_frequent_first(merger, alphabet, limit, 1, first, wanted);
}

}  // namespace chainrule
