#include "decode/pages.hpp"

#include <algorithm>
#include <string>

namespace chainrule {
namespace {

size_t pages_of(size_t positions) { return (positions + PAGE - 1) / PAGE; }

}  // namespace

void Pages::reserve(const std::vector<Span>& spans) {
    if (!floats_) return;
    size_t needed = 0;
    for (const Span& span : spans) {
        truncate(span.sequence, span.kept);
        const std::vector<float*>& table = tables_[span.sequence];
        const size_t end = pages_of(span.end);
        needed += end - std::min(end, table.size());
        for (size_t i = span.first / PAGE; i < std::min(end, table.size()); ++i) needed += users_.at(table[i]) > 1;
    }
    if (limit() && held() + needed > limit())
        throw OutOfPages(std::to_string(needed) + " pages are needed, " + std::to_string(limit() - held()) + " of " +
                         std::to_string(limit()) + " are free");
    while (free_.size() < needed) {  // before anything is taken: the system may have no memory
        memory_.push_back(std::make_unique<Scratch>(floats_));
        free_.push_back(memory_.back()->data());
    }
    for (const Span& span : spans) {
        std::vector<float*>& table = tables_[span.sequence];
        for (size_t i = span.first / PAGE; i < table.size(); ++i)
            if (users_.at(table[i]) > 1) {
                float* own = take();
                std::copy_n(table[i], floats_, own);
                drop(table[i]);
                table[i] = own;
            }
        while (table.size() < pages_of(span.end)) table.push_back(take());
    }
}

void Pages::share(size_t from, size_t to, size_t positions) {
    truncate(to, 0);
    const std::vector<float*>& source = tables_[from];
    tables_[to].assign(source.begin(), source.begin() + std::min(pages_of(positions), source.size()));
    for (float* page : tables_[to]) ++users_.at(page);
}

void Pages::truncate(size_t sequence, size_t positions) {
    std::vector<float*>& table = tables_[sequence];
    for (; table.size() > pages_of(positions); table.pop_back()) drop(table.back());
}

float* Pages::take() {
    float* page = free_.back();
    free_.pop_back();
    users_[page] = 1;
    return page;
}

void Pages::drop(float* page) {
    if (--users_.at(page)) return;
    users_.erase(page);
    free_.push_back(page);
}

}  // namespace chainrule
