#include <algorithm>
#include <limits>

#include "text/unigram.hpp"

namespace chainrule {
namespace {

constexpr double PENALTY = 10;          // log probability of an unknown character below that of the worst piece
constexpr size_t CACHED = 1 << 18;      // units
constexpr size_t LONG_UNIT = 256;       // bytes; a longer one hardly occurs twice
constexpr double NEVER = -std::numeric_limits<double>::infinity();

}  // namespace

UnigramEncoder::UnigramEncoder(std::vector<std::string> pieces, std::vector<int32_t> ids, std::vector<double> scores,
                               int32_t unknown, std::array<int32_t, 256> bytes, bool by_units)
    : pieces_(std::move(pieces)),
      ids_(std::move(ids)),
      scores_(std::move(scores)),
      unknown_(unknown),
      bytes_(bytes),
      by_units_(by_units) {
    trie_ = std::make_unique<Trie>(std::vector<std::string_view>(pieces_.begin(), pieces_.end()));
    unknown_score_ = scores_.empty() ? -PENALTY : *std::min_element(scores_.begin(), scores_.end()) - PENALTY;
}

std::vector<int32_t> UnigramEncoder::encode(std::string_view text) {
    std::vector<int32_t> out;
    std::lock_guard<std::mutex> lock(busy_);
    if (!by_units_) {
        cut(text);
        append(out, cut_.data(), cut_.size());
        return out;
    }
    for_units(text, [&](std::string_view unit) {
        if (unit.size() > LONG_UNIT) {
            cut(unit);
            append(out, cut_.data(), cut_.size());
            return;
        }
        if (units_.size() >= CACHED) {
            units_.clear();
            places_.clear();
            cached_.clear();
        }
        const uint32_t number = units_.add(unit);
        if (number == places_.size()) {
            cut(unit);
            places_.emplace_back(cached_.size(), cut_.size());
            cached_.insert(cached_.end(), cut_.begin(), cut_.end());
        }
        append(out, cached_.data() + places_[number].first, places_[number].second);
    });
    return out;
}

// A run of unknown characters is one unknown token.
void UnigramEncoder::append(std::vector<int32_t>& out, const int32_t* ids, size_t count) const {
    if (count && ids[0] == unknown_ && !out.empty() && out.back() == unknown_) ++ids, --count;
    out.insert(out.end(), ids, ids + count);
}

// Viterbi: the best segmentation up to each place from those before it; of equal ones that with the longest last piece.
void UnigramEncoder::cut(std::string_view text) {
    const size_t n = text.size();
    best_.assign(n + 1, {NEVER, 0, -1});
    best_[0].score = 0;
    for (size_t start = 0; start < n;) {
        const size_t letter = std::min(utf8_size(static_cast<uint8_t>(text[start])), n - start);
        const double before = best_[start].score;
        bool letter_known = false;
        uint32_t node = 0;
        for (size_t end = start; end < n;) {
            node = trie_->step(node, static_cast<uint8_t>(text[end++]));
            if (node == Trie::NONE) break;
            const uint32_t piece = trie_->value(node);
            if (piece == Trie::NONE) continue;
            letter_known |= end - start == letter;
            if (before + scores_[piece] > best_[end].score)
                best_[end] = {before + scores_[piece], static_cast<uint32_t>(end - start), static_cast<int32_t>(piece)};
        }
        if (!letter_known && before + unknown_score_ > best_[start + letter].score)
            best_[start + letter] = {before + unknown_score_, static_cast<uint32_t>(letter), -1};
        start += letter;
    }
    cut_.clear();
    for (size_t end = n; end > 0; end -= best_[end].size) {  // backwards; reversed below
        const Step& step = best_[end];
        if (step.piece >= 0) {
            cut_.push_back(ids_[step.piece]);
        } else if (bytes_[0] < 0) {
            if (cut_.empty() || cut_.back() != unknown_) cut_.push_back(unknown_);
        } else {
            for (size_t i = 1; i <= step.size; ++i) cut_.push_back(bytes_[static_cast<uint8_t>(text[end - i])]);
        }
    }
    std::reverse(cut_.begin(), cut_.end());
}

}  // namespace chainrule
