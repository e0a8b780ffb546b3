// The memory of a KV cache: pages of a fixed number of positions, each with the keys and values of all layers, taken on
// demand, and shared by sequences that begin alike.
#pragma once

#include <memory>
#include <stdexcept>
#include <unordered_map>
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
    explicit Pages(size_t sequences, size_t bytes = 0) : limit_bytes_(bytes), tables_(sequences) {}

    // Space in each page for a layer; returns where it begins. No page has been taken yet.
    size_t add_layer(size_t heads, size_t D) {
        const size_t offset = floats_;
        floats_ += heads * head_floats(D);
        return offset;
    }
    static size_t head_floats(size_t D) { return PAGE * (D + whole_panels(D)); }

    float* const* of(size_t sequence) const { return tables_[sequence].data(); }
    size_t sequences() const { return tables_.size(); }
    void grow(size_t sequences) { tables_.resize(sequences); }

    // Pages for what is about to be written, which then belong to their sequence alone. Throws OutOfPages before
    // anything that is kept has changed.
    void reserve(const std::vector<Span>& spans);
    void share(size_t from, size_t to, size_t positions);   // the first positions of a sequence, for another one too
    void truncate(size_t sequence, size_t positions);       // forget what comes after them

    size_t held() const { return users_.size(); }           // pages that a sequence uses
    size_t page_bytes() const { return floats_ * sizeof(float); }
    size_t limit() const { return limit_bytes_ && floats_ ? limit_bytes_ / page_bytes() : 0; }  // pages; 0 for no limit

private:
    float* take();
    void drop(float* page);

    size_t floats_ = 0, limit_bytes_;
    std::vector<std::vector<float*>> tables_;        // the pages of each sequence
    std::unordered_map<float*, size_t> users_;       // how many sequences use a page
    std::vector<float*> free_;
    std::vector<std::unique_ptr<Scratch>> memory_;
};

}  // namespace chainrule
