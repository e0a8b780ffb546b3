#include "decode/pages.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace chainrule {
namespace {

constexpr size_t SLAB = 32;  // pages of a slab at most
constexpr size_t RUN = 8;    // pages that are left for one text to grow into, at most

size_t pages_of(size_t positions) { return (positions + PAGE - 1) / PAGE; }

}  // namespace

size_t Pages::add_layer(size_t heads, size_t D) {
    const size_t before = floats_;
    for (size_t h = 0; h < heads; ++h) {
        parts_.push_back(part_floats(format, PAGE * D));
        parts_.insert(parts_.end(), whole_panels(D) / PANEL, part_floats(format, PAGE * PANEL));
    }
    floats_ += heads * head_floats(format, D);
    return before;
}

void Pages::reserve(const std::vector<Span>& spans) {
    if (!floats_) return;
    for (const Span& span : spans) truncate(span.sequence, span.kept);
    size_t needed = 0;
    std::unordered_map<size_t, size_t> copies;  // of shared pages: the last of their users keeps the page itself
    for (const Span& span : spans) {
        const std::vector<size_t>& numbers = tables_[span.sequence].numbers;
        needed += pages_of(span.end) - numbers.size();
        for (size_t i = span.first / PAGE; i < numbers.size(); ++i)
            if (users_[numbers[i]] > copies[numbers[i]] + 1) ++copies[numbers[i]], ++needed;
    }
    if (limited() && held() + needed > limit())
        throw OutOfPages(std::to_string(needed) + " pages are needed, " + std::to_string(limit() - held()) + " of " +
                         std::to_string(limit()) + " are free");
    while (free_.size() < needed) make(needed - free_.size());  // now: the system may have no memory
    size_t run = 1;  // texts that grow side by side each have pages that follow each other
    while (2 * run <= RUN && 2 * run * needed <= free_.size()) run *= 2;
    for (const Span& span : spans) {
        Table& table = tables_[span.sequence];
        for (size_t i = span.first / PAGE; i < table.numbers.size(); ++i) {
            const size_t shared = table.numbers[i];
            if (users_[shared] == 1) continue;
            table.numbers[i] = take(table, run);
            table.pages[i] = made_[table.numbers[i]];
            copy(table.pages[i], made_[shared]);
            drop(shared);
        }
        while (table.numbers.size() < pages_of(span.end)) add(table, take(table, run));
    }
}

void Pages::share(size_t from, size_t to, size_t positions) {
    truncate(to, 0);
    const std::vector<size_t>& numbers = tables_[from].numbers;
    for (size_t i = 0; i < std::min(pages_of(positions), numbers.size()); ++i) {
        ++users_[numbers[i]];
        add(tables_[to], numbers[i]);
    }
}

void Pages::truncate(size_t sequence, size_t positions) {
    Table& table = tables_[sequence];
    for (; table.numbers.size() > pages_of(positions); table.numbers.pop_back(), table.pages.pop_back())
        drop(table.numbers.back());
}

// Slabs grow with the pages in use, so that few texts take little memory.
void Pages::make(size_t count) {
    size_t slab = std::min(SLAB, std::max(count, made_.size()));
    if (limited()) slab = std::min(slab, limit() - made_.size());
    memory_.push_back(std::make_unique<Floats>(slab * floats_));
    for (size_t i = 0; i < slab; ++i) {
        free_.insert(made_.size());
        made_.push_back({memory_.back()->data(), i, slab});
    }
    users_.resize(made_.size());
}

void Pages::add(Table& table, size_t number) {
    table.numbers.push_back(number);
    table.pages.push_back(made_[number]);
}

size_t Pages::take(const Table& table, size_t run) {
    auto found = table.numbers.empty() ? free_.end() : free_.find(table.numbers.back() + 1);
    const size_t number = found == free_.end() ? first_of(run) : *found;
    free_.erase(number);
    users_[number] = 1;
    return number;
}

// The first of `run` free pages that begin at a multiple of it, or of as many as there are.
size_t Pages::first_of(size_t run) const {
    for (; run > 1; run /= 2) {
        size_t count = 0, before = 0;
        for (const size_t number : free_) {
            count = number % run == 0 ? 1 : count && number == before + 1 ? count + 1 : 0;
            if (count == run) return number + 1 - run;
            before = number;
        }
    }
    return *free_.begin();
}

void Pages::drop(size_t number) {
    if (!--users_[number]) free_.insert(number);
}

void Pages::copy(const Page& to, const Page& from) const {
    size_t before = 0;
    for (const size_t floats : parts_) {
        std::copy_n(from.slab + before * from.count + floats * from.index, floats,
                    to.slab + before * to.count + floats * to.index);
        before += floats;
    }
}

}  // namespace chainrule
