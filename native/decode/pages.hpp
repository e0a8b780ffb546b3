// The memory of a KV cache: pages of a fixed number of positions, each with the keys and values of all layers, taken on
// demand, and shared by sequences that begin alike.
#pragma once

#include <memory>
#include <set>
#include <stdexcept>
#include <vector>

#include "decode/decode.hpp"
#include "runtime/memory.hpp"

namespace chainrule {

struct OutOfPages : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// What a sequence is about to write: positions `first` to `end`. The `kept` before them stay, those after are forgotten.
struct Span {
    size_t sequence, kept, first, end;
};

class Pages {
public:
    explicit Pages(size_t sequences, size_t bytes = 0, CacheFormat format = CacheFormat::fp32)
        : format(format), limit_bytes_(bytes), tables_(sequences) {}
    const CacheFormat format;

    // Space in each page for a layer; returns the floats of those before it. No page has been taken yet.
    size_t add_layer(size_t heads, size_t D);

    const Page* of(size_t sequence) const { return tables_[sequence].pages.data(); }
    const std::vector<size_t>& numbers(size_t sequence) const { return tables_[sequence].numbers; }  // of its pages
    size_t sequences() const { return tables_.size(); }
    void grow(size_t sequences) { tables_.resize(sequences); }

    // Pages for what is about to be written, which then belong to their sequence alone. Throws OutOfPages before
    // anything that is kept has changed.
    void reserve(const std::vector<Span>& spans);
    void share(size_t from, size_t to, size_t positions);   // the first positions of a sequence, for another one too
    void truncate(size_t sequence, size_t positions);       // forget what comes after them

    size_t held() const { return made_.size() - free_.size(); }  // pages that a sequence uses
    size_t page_bytes() const { return floats_ * sizeof(float); }
    bool limited() const { return limit_bytes_ && floats_; }
    size_t limit() const { return limited() ? limit_bytes_ / page_bytes() : 0; }  // pages, if their number is limited

private:
    struct Table {  // the pages of a sequence: their numbers, and where they are
        std::vector<size_t> numbers;
        std::vector<Page> pages;
    };
    void make(size_t count);  // more free pages, at least this many
    void add(Table& table, size_t number);
    size_t take(const Table& table, size_t run);  // the page after its last one, or the first of `run` that follow each other
    size_t first_of(size_t run) const;
    void drop(size_t number);
    void copy(const Page& to, const Page& from) const;

    size_t floats_ = 0, limit_bytes_;
    std::vector<size_t> parts_;   // floats of each part of a page
    std::vector<Table> tables_;
    std::vector<Page> made_;      // all pages
    std::vector<size_t> users_;   // how many sequences use each
    std::set<size_t> free_;       // numbers of those without a user
    std::vector<std::unique_ptr<Floats>> memory_;
};

}  // namespace chainrule
