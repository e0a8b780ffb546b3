#include "text/wordpiece.hpp"

#include <algorithm>
#include <stdexcept>

namespace chainrule {

std::vector<int32_t> BertTable::missing(std::string_view text) const {
    std::shared_lock<std::shared_mutex> lock(mutex);
    std::vector<bool> asked;
    std::vector<int32_t> codes;
    const Bytes begin = reinterpret_cast<Bytes>(text.data()), end = begin + text.size();
    for (Bytes p = begin; p < end;) {
        const size_t size = std::min(utf8_size(*p), static_cast<size_t>(end - p));
        const uint32_t code = utf8_code(p, size);
        p += size;
        if ((code < 128 && letters_[code]) || entry(code).size != MISSING) continue;
        if (asked.empty()) asked.resize(CODES);  // rare: most texts have no new character
        if (asked[code]) continue;
        asked[code] = true;
        codes.push_back(static_cast<int32_t>(code));
    }
    return codes;
}

void BertTable::add(uint32_t code, std::string_view replacement) {
    std::unique_lock<std::shared_mutex> lock(mutex);
    if (replacement.size() >= MISSING) throw std::length_error("the replacement of a character has 255 bytes or more");
    auto& page = pages_[code >> 8];
    if (!page) page = std::make_unique<Page>();
    (*page)[code & 255] = {static_cast<uint32_t>(replacements_.size()), static_cast<uint8_t>(replacement.size())};
    replacements_ += replacement;
    if (code < 128 && replacement.size() == 1 && replacement[0] != ' ') letters_[code] = replacement[0];
}

// The tokens that begin with `prefix`, keyed by the rest.
WordPieceEncoder::Pieces::Pieces(const Vocabulary& vocabulary, std::string_view prefix) {
    std::vector<std::pair<std::string_view, int32_t>> found;
    for (size_t id = 0; id < vocabulary.size(); ++id) {
        const std::string_view token = vocabulary[id];
        if (token.size() > prefix.size() && token.substr(0, prefix.size()) == prefix)
            found.emplace_back(token.substr(prefix.size()), static_cast<int32_t>(id));
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string_view> keys;
    for (const auto& [key, id] : found) {
        if (!keys.empty() && keys.back() == key) throw std::invalid_argument("tokens must be distinct");
        keys.push_back(key);
        ids.push_back(id);
    }
    tree = std::make_unique<Trie>(keys);
}

WordPieceEncoder::WordPieceEncoder(std::shared_ptr<const BertTable> table, const Vocabulary& vocabulary,
                                   std::string_view prefix, int32_t unknown, size_t most)
    : table_(std::move(table)), first_(vocabulary, ""), inner_(vocabulary, prefix), unknown_(unknown), most_(most) {}

std::vector<int32_t> WordPieceEncoder::encode(std::string_view text) const {
    std::shared_lock<std::shared_mutex> lock(table_->mutex);
    return encode_parallel(text, caches_, [this](Span piece, WordCache& cache, std::vector<int32_t>& out) {
        std::string buffer;
        buffer.reserve(1024);
        table_->for_words(piece, buffer, [&](std::string_view word) {
            const Bytes begin = reinterpret_cast<Bytes>(word.data());
            cache.append(out, begin, word.size(), begin + buffer.capacity(),
                         [&](std::vector<int32_t>& ids) { cut(word, ids); });
        });
    });
}

// Greedy longest match from left to right; if that fails anywhere, the whole word is unknown.
void WordPieceEncoder::cut(std::string_view word, std::vector<int32_t>& ids) const {
    ids.clear();
    size_t characters = 0;
    for (const char byte : word) characters += !utf8_continues(byte);
    for (size_t start = 0; start < word.size() && characters <= most_;) {
        const Pieces& pieces = start ? inner_ : first_;
        size_t end = start;
        uint32_t node = 0, longest = Trie::NONE;
        for (size_t i = start; i < word.size();) {
            node = pieces.tree->step(node, static_cast<uint8_t>(word[i++]));
            if (node == Trie::NONE) break;
            if (pieces.tree->value(node) == Trie::NONE) continue;
            longest = pieces.tree->value(node);
            end = i;
        }
        if (longest == Trie::NONE) break;
        ids.push_back(pieces.ids[longest]);
        start = end;
        if (end == word.size()) return;
    }
    ids.assign(1, unknown_);
}

}  // namespace chainrule
