// The first half of training Unigram: the letters and strings that pieces are chosen from.
#include "text/unigram_training.hpp"

#include <algorithm>
#include <unordered_map>

namespace chainrule {
namespace {

constexpr char BETWEEN = '\xFF';  // ends every word; not a byte of UTF-8
constexpr size_t LOOK = 64;       // bytes compared: the longest piece, 16 letters of 4 bytes

size_t letters(std::string_view text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return !utf8_continues(c); });
}

bool better(const Seed& a, const Seed& b) {
    return a.score != b.score ? a.score > b.score : a.text < b.text;
}

struct Suffix {
    uint64_t front;  // its first eight bytes, big-endian: compares like them
    uint32_t begin, word;
};

uint64_t front_of(const char* text) {
    uint64_t front = 0;
    for (int i = 0; i < 8; ++i) front = front << 8 | static_cast<uint8_t>(text[i]);
    return front;
}

// All suffixes of all words, sorted. The comparison may run into the next word of `text`, which is harmless: suffixes
// with a common prefix are adjacent all the same.
std::vector<Suffix> sorted_suffixes(const std::string& text) {
    std::vector<Suffix> suffixes;
    uint32_t word = 0;
    for (uint32_t i = 0; i + LOOK < text.size(); ++i) {
        if (text[i] == BETWEEN)
            ++word;
        else if (!utf8_continues(text[i]))
            suffixes.push_back({front_of(&text[i]), i, word});
    }
    std::sort(suffixes.begin(), suffixes.end(), [&](const Suffix& a, const Suffix& b) {
        if (a.front != b.front) return a.front < b.front;
        const int order = std::memcmp(&text[a.begin + 8], &text[b.begin + 8], LOOK - 8);
        return order ? order < 0 : a.begin < b.begin;
    });
    return suffixes;
}

// Bytes of a suffix up to the end of its word, or of most_letters letters.
uint8_t reach(const char* suffix, size_t most_letters) {
    const char* end = suffix;
    for (size_t k = 0; k < most_letters && *end != BETWEEN; ++k) end += utf8_size(static_cast<uint8_t>(*end));
    return static_cast<uint8_t>(end - suffix);
}

// Bytes of the common prefix in whole letters.
uint8_t shared(const char* a, const char* b, uint8_t most) {
    uint8_t same = 0;
    while (same < most && a[same] == b[same]) ++same;
    while (same && same < most && (utf8_continues(a[same]) || utf8_continues(b[same]))) --same;
    return same;
}

}  // namespace

// The most frequent letters that make up `coverage` of the text; the others are left to byte tokens or <unk>.
std::vector<Seed> frequent_letters(const Words& units, double coverage) {
    std::unordered_map<std::string_view, uint64_t> counts;
    double total = 0;
    for (const auto& [unit, count] : units)
        for (size_t i = 0; i < unit.size();) {
            const size_t size = utf8_size(static_cast<uint8_t>(unit[i]));
            counts[std::string_view(unit).substr(i, size)] += count;
            total += static_cast<double>(count);
            i += size;
        }
    std::vector<Seed> found;
    for (const auto& [letter, count] : counts) found.push_back({std::string(letter), static_cast<double>(count)});
    std::sort(found.begin(), found.end(), better);
    double covered = 0;
    size_t kept = 0;
    while (kept < found.size() && covered < coverage * total) covered += found[kept++].score;
    found.resize(kept);
    return found;
}

// Words: units split at letters that are not pieces.
Words split_at_unknown(const Words& units, const std::vector<Seed>& letters) {
    Numbering known, parts;
    for (const Seed& letter : letters) known.add(letter.text);
    std::vector<uint64_t> counts;
    for (const auto& [unit, count] : units) {
        const std::string_view text = unit;
        size_t begin = 0;
        for (size_t i = 0, size; i <= text.size(); i += size) {
            size = i < text.size() ? utf8_size(static_cast<uint8_t>(text[i])) : 1;
            if (i < text.size() && known.find(text.substr(i, size)) != Trie::NONE) continue;
            if (i > begin) {
                const uint32_t part = parts.add(text.substr(begin, i - begin));
                if (part == counts.size()) counts.push_back(0);
                counts[part] += count;
            }
            begin = i + size;
        }
    }
    Words words;
    for (uint32_t i = 0; i < parts.size(); ++i) words.emplace_back(parts.key(i), counts[i]);
    std::sort(words.begin(), words.end());
    return words;
}

// Strings of at least two letters that occur at least twice, the `limit` best by count times letters. A string that is
// always followed by the same letter is left out in favor of the longer one: what remains are the longest common prefixes
// of adjacent suffixes, and the suffixes that are not a prefix of their neighbors.
std::vector<Seed> frequent_strings(const Words& words, size_t most_letters, size_t limit) {
    std::string text;
    for (const auto& [word, count] : words) text.append(word) += BETWEEN;
    text.append(LOOK, BETWEEN);
    const std::vector<Suffix> suffixes = sorted_suffixes(text);
    const size_t n = suffixes.size();
    std::vector<uint8_t> length(n), common(n + 1, 0);  // bytes of the suffix, and of its common prefix with the one before
    std::vector<uint64_t> before(n + 1, 0);            // sum of the counts of all earlier suffixes
    for (size_t i = 0; i < n; ++i) {
        const char* suffix = &text[suffixes[i].begin];
        length[i] = reach(suffix, most_letters);
        if (i) common[i] = shared(&text[suffixes[i - 1].begin], suffix, std::min(length[i - 1], length[i]));
        before[i + 1] = before[i] + words[suffixes[i].word].second;
    }
    std::vector<Seed> found;
    auto report = [&](size_t suffix, size_t size, uint64_t count) {
        const std::string_view string(&text[suffixes[suffix].begin], size);
        const size_t length = letters(string);
        if (count >= 2 && length >= 2)
            found.push_back({std::string(string), static_cast<double>(count) * static_cast<double>(length)});
    };
    std::vector<std::pair<size_t, size_t>> open;  // common prefixes: their bytes, and the first suffix that has them
    for (size_t i = 0; i < n; ++i) {
        const size_t next = common[i + 1];
        if (length[i] > std::max<size_t>(common[i], next)) report(i, length[i], before[i + 1] - before[i]);
        size_t first = i;
        for (; !open.empty() && open.back().first > next; open.pop_back()) {
            first = open.back().second;
            report(i, open.back().first, before[i + 1] - before[first]);
        }
        if (next && (open.empty() || open.back().first < next)) open.emplace_back(next, first);
    }
    if (found.size() > limit) {
        std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(limit), found.end(), better);
        found.resize(limit);
    }
    std::sort(found.begin(), found.end(), better);
    return found;
}

}  // namespace chainrule
