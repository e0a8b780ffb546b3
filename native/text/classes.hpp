// Characters of UTF-8 text by kind: letters, numbers, white space, or other classes that expressions ask for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace chainrule {

enum Kind : uint8_t { OTHER, LETTER, NUMBER, SPACE };

using Bytes = const uint8_t*;
using Span = std::pair<Bytes, Bytes>;

inline std::string_view as_text(Bytes begin, Bytes end) {
    return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)};
}

struct Char {
    Kind kind;
    uint8_t size;  // in bytes
};

class Expressions;

// The kind of every code point, as a table of pages of 256; equal pages are stored once. Kinds are those of `Kind`, or what
// `expressions` take them for.
class Classes {
public:
    Classes(const int32_t* ranges, size_t count);  // rows of (first, last, kind)

    std::shared_ptr<const Expressions> expressions;

    // The character at p < end. A byte that does not begin a valid character counts as one of kind OTHER.
    Char read(Bytes p, Bytes end) const {
        if (*p < 0x80) return {pages_[0][*p], 1};
        return read_wide(p, end);
    }

    Bytes skip(Kind kind, Bytes p, Bytes end) const {  // past all characters of that kind
        while (p < end) {
            const Char c = read(p, end);
            if (c.kind != kind) break;
            p += c.size;
        }
        return p;
    }

private:
    Char read_wide(Bytes p, Bytes end) const;

    std::vector<std::array<Kind, 256>> pages_;  // the first is that of ASCII
    std::array<uint16_t, 0x1100> page_of_;
};

}  // namespace chainrule
