#include "decode/program.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>

#include "runtime/pool.hpp"
#include "decode/steps.hpp"

namespace chainrule {

void Buffer::reserve(size_t rows) {
    if (rows <= rows_) return;
    rows_ = 0;  // should there be no memory
    memory_.reset();
    memory_ = std::make_unique<Floats>(rows * stride);
    std::fill_n(memory_->data(), rows * stride, 0.0f);
    rounded_.reset();
    if (rounds_) rounded_ = std::make_unique<Floats>(rows * groups() * ROUNDED_FLOATS);
    rows_ = rows;
}

void RecurrentState::grow(size_t sequences) {
    auto larger = std::make_unique<Floats>(sequences * stride * parts);
    std::fill_n(larger->data(), sequences * stride * parts, 0.0f);
    if (memory_) std::copy_n(memory_->data(), sequences_ * stride * parts, larger->data());
    memory_ = std::move(larger), sequences_ = sequences;
}

size_t Program::buffer(size_t width) {
    buffers_.push_back(std::make_unique<Buffer>(width, last_));
    return buffers_.size() - 1;
}

void Program::embedding(size_t out, Weights table, float scale, const float* position_tc, const float* prompt_pc) {
    steps_.push_back(steps::embedding(at(out), table, scale, position_tc, prompt_pc));
}

void Program::layernorm(size_t out, size_t in, const float* gamma, const float* beta, float eps) {
    steps_.push_back(steps::layernorm(last_, at(out), at(in), gamma, beta, eps));
}

void Program::rmsnorm(size_t out, size_t in, const float* gamma, float eps) {
    steps_.push_back(steps::rmsnorm(last_, at(out), at(in), gamma, eps));
}

void Program::linear(size_t out, size_t offset, size_t in, Weights weights, const float* bias, Activation activation,
                     bool add) {
    multiply(steps_, last_, at(out), offset, at(in), weights, bias, activation, add);
}

void Program::multiply(Steps& steps, bool last, Buffer& out, size_t offset, Buffer& in, Weights weights,
                       const float* bias, Activation activation, bool add) {
    if (in_blocks(weights.format)) {
        in.keep_rounded();
        steps.push_back(steps::round(last, in));
    }
    steps.push_back(steps::linear(last, out, offset, in, weights, bias, activation, add));
    scratch_ = std::max(scratch_, steps::MATMUL_ROWS * PANEL);
}

void Program::attention(size_t out, size_t qkv, const Attention& a) {
    const size_t D = at(out).width / a.heads;
    caches_.push_back(std::make_unique<KVCache>(pages_, a.kv_heads, D, a.prefix));
    longest_prefix_ = std::max(longest_prefix_, a.prefix.length);
    shortest_prefix_ = std::min(shortest_prefix_, a.prefix.length);
    const steps::Heads shared{at(qkv), a.heads, a.kv_heads, D, *caches_.back()};
    steps_.push_back(steps::remember(shared, a.cos, a.sin, a.norms));
    steps_.push_back(steps::attend(shared, at(out), a.scores, false));
}

void Program::cross_attention(size_t out, size_t q, size_t heads, float scale, Weights weights, const float* bias) {
    const size_t D = at(out).width / heads;
    if (!memory_) {
        memory_ = std::make_unique<Buffer>(weights.inputs, false);
        keys_values_ = std::make_unique<Buffer>(weights.outputs, false);
    }
    source_caches_.push_back(std::make_unique<KVCache>(source_pages_, heads, D));
    const KVCache& caches = *source_caches_.back();
    multiply(reading_, false, *keys_values_, 0, *memory_, weights, bias, Activation::none, false);
    const steps::Heads both{*keys_values_, 0, heads, D, caches};
    reading_.push_back(steps::remember(both, nullptr, nullptr));
    steps_.push_back(steps::attend({at(q), heads, heads, D, caches}, at(out), {scale}, true));
}

void Program::swiglu(size_t out, size_t in) {
    steps_.push_back(steps::swiglu(last_, at(out), at(in)));
}

void Program::gated(size_t out, size_t in, Activation activation) {
    steps_.push_back(steps::gated(last_, at(out), at(in), activation));
}

void Program::add(size_t out, size_t a, size_t b) {
    steps_.push_back(steps::add(last_, at(out), at(a), at(b)));
}

void Program::scale(size_t out, size_t in, float factor) {
    steps_.push_back(steps::scale(last_, at(out), at(in), factor));
}

void Program::activation(size_t out, size_t in, Activation activation) {
    steps_.push_back(steps::activation(last_, at(out), at(in), activation));
}

void Program::recurrent(size_t out, size_t gates, Cell cell, Weights weights, const Weights* candidate,
                        const float* bias) {
    states_.push_back(std::make_unique<RecurrentState>(cell == Cell::lstm ? 2 : 1, at(out).width));
    states_.back()->grow(sequences());
    steps_.push_back(steps::recurrent(at(out), at(gates), cell, weights, candidate ? *candidate : weights, bias,
                                      *states_.back()));
    scratch_ = std::max(scratch_, steps::recurrent_scratch(at(out).width, at(gates).width));
}

void Program::last(size_t out, size_t in) {
    steps_.push_back(steps::last(at(out), at(in)));
    last_ = true;
}

void Program::read(const Batch& sources, const float* memory_rc) {
    size_t longest = 1;
    std::vector<Span> spans;
    for (const Piece& piece : sources.pieces) {
        longest = std::max(longest, piece.count);
        spans.push_back({piece.sequence, 0, 0, piece.count});
    }
    for (size_t i = 0; i < source_pages_.sequences(); ++i) source_pages_.truncate(i, 0);
    source_pages_.grow(sources.pieces.size());
    source_pages_.reserve(spans);
    for (auto& layer : source_caches_) scratch_ = std::max(scratch_, attend_scratch(longest, layer->D));
    memory_->reserve(sources.rows());
    keys_values_->reserve(sources.rows());
    for (size_t r = 0; r < sources.rows(); ++r)
        std::copy_n(memory_rc + r * memory_->width, memory_->width, memory_->row(r));
    walk(reading_, sources);
}

void Program::run(const Batch& batch) {
    size_t longest = 0;
    std::vector<Span> spans;
    for (const Piece& piece : batch.pieces) {
        const size_t end = piece.past + piece.count;
        longest = std::max(longest, end);
        spans.push_back({piece.sequence, cached(piece.past), piece.past ? shortest_prefix_ + piece.past : 0, cached(end)});
    }
    if (!caches_.empty()) pages_.reserve(spans);
    for (auto& layer : caches_) scratch_ = std::max(scratch_, attend_scratch(layer->prefix.length + longest, layer->D));
    for (auto& buffer : buffers_) buffer->reserve(batch.rows(buffer->last));
    walk(steps_, batch);
}

// The pool's threads walk through all steps together. A thread takes the next block of a step and moves on when all its
// blocks are done. A thread that has not arrived is not waited for.
void Program::walk(const Steps& steps, const Batch& batch) const {
    struct alignas(64) Place {
        std::atomic<size_t> next{0}, done{0};
    };
    const std::unique_ptr<Place[]> places(new Place[steps.size()]);
    const size_t threads = static_cast<size_t>(get_threads());
    const Scratch scratch(threads * scratch_);
    parallel_for(threads, [&](size_t thread) {
        for (size_t s = 0; s < steps.size(); ++s) {
            Place& place = places[s];
            const size_t blocks = steps[s].blocks(batch);
            for (size_t block; (block = place.next.fetch_add(1, std::memory_order_relaxed)) < blocks;) {
                steps[s].run(batch, block, scratch.data() + thread * scratch_);
                place.done.fetch_add(1, std::memory_order_release);
            }
            for (size_t spins = 0; place.done.load(std::memory_order_acquire) < blocks; ++spins)
                if (spins > 2000) sched_yield();  // more threads than cores: let the one at work have this one
                else relax();
        }
    });
}

void Program::grow(size_t sequences) {
    pages_.grow(sequences);
    for (auto& layer : states_) layer->grow(sequences);
}

void Program::copy(size_t from, size_t to, size_t count) {
    pages_.share(from, to, cached(count));
    for (auto& layer : states_) std::copy_n(layer->at(from), layer->stride * layer->parts, layer->at(to));
}

void Program::truncate(size_t sequence, size_t count) { pages_.truncate(sequence, cached(count)); }

}  // namespace chainrule
