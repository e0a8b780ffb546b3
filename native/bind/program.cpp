#include "decode/pack.hpp"
#include "decode/program.hpp"

#include <mutex>

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bind/ids.hpp"

namespace chainrule {
namespace {

using Words = Array<const int32_t, 1>;

Format format_of(int code) {
    if (code < 0 || code >= FORMATS)
        throw std::invalid_argument("format must be from 0 to " + std::to_string(FORMATS - 1));
    return static_cast<Format>(code);
}

void check_blocks(Format format, size_t inputs) {
    if (block_inputs(format) > GROUP && inputs % block_inputs(format))
        throw std::invalid_argument("inputs must be whole blocks of the format");
}

Weights weights_of(const Words& words, int format, size_t outputs, size_t inputs) {
    Weights weights{words.data(), format_of(format), outputs, inputs};
    check_blocks(weights.format, inputs);
    pointer(words, "words", weights.panels() * panel_words(weights.format, weights.K()));
    return weights;
}

// A Program that checks what it is given, and keeps the arrays it points into.
class Checked {
    static constexpr size_t MOST = size_t(1) << 31;

public:
    Checked(size_t sequences, size_t positions, size_t cache_bytes, int cache)
        : program_(sequences, positions, cache_bytes, static_cast<CacheFormat>(cache)) {
        if (cache < 0 || cache >= CACHE_FORMATS) throw std::invalid_argument("cache must be from 0 to 2");
        if (!sequences || !positions) throw std::invalid_argument("sequences and positions must be at least 1");
    }

    size_t buffer(size_t width) {
        if (!width || width > MOST) throw std::invalid_argument("width must be at least 1, and less than 2^31");
        return program_.buffer(width);
    }

    // Every sequence begins with the rows of `prompt`, which take the first positions.
    void embedding(size_t out, Words words, int format, size_t tokens, float scale, std::optional<ConstMatrix> position,
                   std::optional<ConstMatrix> prompt) {
        const size_t width = program_.width(out);
        if (tokens_ || ended_) throw std::invalid_argument("a program embeds once, at its beginning");
        if (!tokens || tokens > MOST) throw std::invalid_argument("tokens must be at least 1, and less than 2^31");
        if (prompt && prompt->shape(0) >= program_.positions) throw std::invalid_argument("no position after the prompt");
        tokens_ = tokens;
        prompt_ = prompt ? prompt->shape(0) : 0;
        program_.embedding(out, weights_of(words, format, tokens, width), scale,
                           pointer_or_null(position, "position", program_.positions * width),
                           pointer_or_null(prompt, "prompt", prompt_ * width));
        keep(words, position, prompt);
    }

    void layernorm(size_t out, size_t in, ConstVector gamma, ConstVector beta, float eps) {
        const size_t width = program_.width(in);
        same(program_.width(out), width);
        program_.layernorm(out, in, pointer(gamma, "gamma", width), pointer(beta, "beta", width), eps);
        keep(gamma, beta);
    }

    void rmsnorm(size_t out, size_t in, ConstVector gamma, float eps) {
        const size_t width = program_.width(in);
        same(program_.width(out), width);
        program_.rmsnorm(out, in, pointer(gamma, "gamma", width), eps);
        keep(gamma);
    }

    // `outputs` of `out`, from the one called `offset` on, by default all
    void linear(size_t out, size_t in, Words words, int format, std::optional<ConstVector> bias, int activation,
                bool add, size_t offset, std::optional<size_t> outputs) {
        if (activation < 0 || activation > 4) throw std::invalid_argument("activation must be from 0 to 4");
        const size_t width = program_.width(out);
        if (offset % PANEL || offset >= width) throw std::invalid_argument("offset must be whole panels of the width");
        const size_t count = outputs.value_or(width - offset);
        if (!count || count > width - offset || (count < width - offset && count % PANEL))
            throw std::invalid_argument("outputs must be whole panels, or all from offset on");
        const Weights weights = weights_of(words, format, count, program_.width(in));
        program_.linear(out, offset, in, weights, pointer_or_null(bias, "bias", weights.panels() * PANEL),
                        static_cast<Activation>(activation), add);
        keep(words, bias);
    }

    void attention(size_t out, size_t qkv, size_t heads, size_t kv_heads, float scale, std::optional<ConstMatrix> cos,
                   std::optional<ConstMatrix> sin, std::optional<ConstVector> gamma_q,
                   std::optional<ConstVector> gamma_k, float eps, std::optional<ConstMatrix> bias,
                   std::optional<ConstMatrix> prefix_keys, std::optional<ConstMatrix> prefix_values) {
        if (ended_) throw std::invalid_argument("attention comes before last");
        const size_t width = program_.width(out);
        if (!heads || !kv_heads || width % heads || heads % kv_heads)
            throw std::invalid_argument("heads must divide the width, and key/value heads the heads");
        const size_t D = width / heads;
        same(program_.width(qkv), (heads + 2 * kv_heads) * D);
        if (!cos != !sin || (cos && D % 2)) throw std::invalid_argument("cos and sin come together, for an even head");
        if (!gamma_q != !gamma_k) throw std::invalid_argument("gains of queries and keys come together");
        if (!prefix_keys != !prefix_values) throw std::invalid_argument("keys and values of a prefix come together");
        const size_t angles = program_.positions * (D / 2), length = prefix_keys ? prefix_keys->shape(0) / kv_heads : 0;
        const size_t longest = program_.positions + length;
        const HeadNorms norms{pointer_or_null(gamma_q, "gamma_q", D), pointer_or_null(gamma_k, "gamma_k", D), eps};
        const Prefix prefix{pointer_or_null(prefix_keys, "prefix_keys", kv_heads * length * D),
                            pointer_or_null(prefix_values, "prefix_values", kv_heads * length * D), length};
        const Scores scores{scale, pointer_or_null(bias, "bias", heads * longest), longest};
        program_.attention(out, qkv, {heads, kv_heads, pointer_or_null(cos, "cos", angles),
                                      pointer_or_null(sin, "sin", angles), norms, scores, prefix});
        keep(cos, sin, gamma_q, gamma_k, bias, prefix_keys, prefix_values);
    }

    void cross_attention(size_t out, size_t q, size_t heads, float scale, size_t memory_width, Words words, int format,
                         std::optional<ConstVector> bias) {
        if (ended_) throw std::invalid_argument("attention comes before last");
        const size_t width = program_.width(out);
        same(program_.width(q), width);
        if (!heads || width % heads) throw std::invalid_argument("heads must divide the width");
        if (!memory_width || memory_width > MOST) throw std::invalid_argument("memory must be at least 1 wide");
        if (program_.memory_width()) {
            same(program_.memory_width(), memory_width);
            same(source_width_, width);
        }
        source_width_ = width;
        const Weights weights = weights_of(words, format, 2 * width, memory_width);
        program_.cross_attention(out, q, heads, scale, weights, pointer_or_null(bias, "bias", weights.panels() * PANEL));
        keep(words, bias);
    }

    void swiglu(size_t out, size_t in) {
        same(program_.width(in), 2 * program_.width(out));
        program_.swiglu(out, in);
    }

    void gated(size_t out, size_t in, int activation) {
        if (activation < 1 || activation > 4) throw std::invalid_argument("activation must be from 1 to 4");
        same(program_.width(in), 2 * program_.width(out));
        program_.gated(out, in, static_cast<Activation>(activation));
    }

    void add(size_t out, size_t a, size_t b) {
        same(program_.width(out), program_.width(a));
        same(program_.width(out), program_.width(b));
        program_.add(out, a, b);
    }

    void scale(size_t out, size_t in, float factor) {
        same(program_.width(out), program_.width(in));
        program_.scale(out, in, factor);
    }

    void activation(size_t out, size_t in, int activation) {
        if (activation < 1 || activation > 4) throw std::invalid_argument("activation must be from 1 to 4");
        same(program_.width(out), program_.width(in));
        program_.activation(out, in, static_cast<Activation>(activation));
    }

    void recurrent(size_t out, size_t gates, int cell, Words words, std::optional<Words> candidate, int format,
                   std::optional<ConstVector> bias) {
        if (ended_) throw std::invalid_argument("a recurrent layer comes before last");
        if (cell < 0 || cell > 3) throw std::invalid_argument("cell must be from 0 to 3");
        const Cell kind = static_cast<Cell>(cell);
        const size_t H = program_.width(out), G = kind == Cell::rnn ? 1 : kind == Cell::lstm ? 4 : 3;
        same(program_.width(gates), G * H);
        if (bool(candidate) != (kind == Cell::gru)) throw std::invalid_argument("a gru has a candidate of its own");
        const Weights weights = weights_of(words, format, candidate ? 2 * H : G * H, H);
        const Weights second = candidate ? weights_of(*candidate, format, H, H) : weights;
        program_.recurrent(out, gates, kind, weights, candidate ? &second : nullptr,
                           pointer_or_null(bias, "bias", weights.panels() * PANEL));
        keep(words, candidate, bias);
    }

    void last(size_t out, size_t in) {
        if (ended_) throw std::invalid_argument("a program has one last");
        same(program_.width(out), program_.width(in));
        program_.last(out, in);
        ended_ = true;
    }

    // Source i is the next counts[i] rows of memory.
    void read(ConstMatrix memory, Ids counts) {
        if (!program_.memory_width()) throw std::invalid_argument("the program attends to no source");
        same(memory.shape(1), program_.memory_width());
        Batch batch;
        for (size_t i = 0; i < counts.size(); ++i) {
            const size_t count = counts.data()[i];
            if (count > memory.shape(0) - batch.rows()) throw std::invalid_argument("counts exceed the rows of memory");
            batch.add({i, count, 0});
        }
        pointer(memory, "memory", batch.rows() * memory.shape(1));
        WithoutGil release;
        std::lock_guard<std::mutex> alone(mutex_);
        sources_.clear();
        program_.read(batch, memory.data());
        for (const Piece& piece : batch.pieces) sources_.push_back(piece.count);
    }

    // Piece i is counts[i] tokens of sequences[i], which has past[i] already and is about sources[i]. Its last kept[i]
    // rows, by default one, are the next of result (rows, width of the last buffer).
    void run(Matrix result, Array<const int32_t, 1> tokens, Ids sequences, Ids counts, Ids past,
             std::optional<Ids> sources, std::optional<Ids> kept) {
        WithoutGil release;
        std::lock_guard<std::mutex> alone(mutex_);  // before the checks: another thread may change what they look at
        const size_t pieces = sequences.size(), width = result.shape(1);
        pointer(counts, "counts", pieces);
        pointer(past, "past", pieces);
        pointer_or_null(sources, "sources", pieces);
        pointer_or_null(kept, "kept", pieces);
        if (!sources != !program_.memory_width())
            throw std::invalid_argument("sources are needed if the program attends to them");
        same(width, program_.result_width());
        const size_t positions = program_.positions - prompt_;
        for (size_t i = 0; i < tokens.size(); ++i)
            if (tokens.data()[i] < 0 || static_cast<size_t>(tokens.data()[i]) >= tokens_)
                throw std::invalid_argument("no such token");
        Batch batch;
        size_t given = 0;
        std::vector<bool> taken(program_.sequences());
        for (size_t i = 0; i < pieces; ++i) {
            const size_t sequence = sequences.data()[i], count = counts.data()[i], before = past.data()[i];
            if (sequence >= taken.size() || taken[sequence]) throw std::invalid_argument("no such sequence, or twice");
            if (!count || count > positions || before > positions - count)
                throw std::invalid_argument("count must be at least 1, and past + count within the positions");
            const size_t keep = kept ? kept->data()[i] : 1;
            if (!keep || keep > count) throw std::invalid_argument("kept must be from 1 to count");
            const size_t source = sources ? sources->data()[i] : 0;
            if (sources && source >= sources_.size()) throw std::invalid_argument("no such source");
            taken[sequence] = true;
            const size_t prompt = before ? 0 : prompt_, past = before ? prompt_ + before : 0;
            for (size_t p = 0; p < prompt; ++p) batch.token.push_back(static_cast<int32_t>(tokens_ + p));
            if (count > tokens.size() - given) throw std::invalid_argument("counts exceed the tokens");
            batch.token.insert(batch.token.end(), tokens.data() + given, tokens.data() + given + count);
            batch.add({sequence, prompt + count, past, source, sources ? sources_[source] : 0}, keep);
            given += count;
        }
        pointer(tokens, "tokens", given);
        if (result.shape(0) != batch.kept.size()) throw std::invalid_argument("result must have a row for each kept");
        if (!pieces) return;
        program_.run(batch);
        for (size_t i = 0; i < batch.kept.size(); ++i)
            std::copy_n(program_.result(i), width, result.data() + i * width);
    }

    // The first `count` positions of one sequence, for another one too.
    void copy(size_t from, size_t to, size_t count) {
        WithoutGil release;
        std::lock_guard<std::mutex> alone(mutex_);
        if (from >= program_.sequences() || to >= program_.sequences()) throw std::invalid_argument("no such sequence");
        if (count > program_.positions - prompt_) throw std::invalid_argument("count must be within the positions");
        if (from != to) program_.copy(from, to, count ? prompt_ + count : 0);
    }

    void truncate(size_t sequence, size_t count) {
        WithoutGil release;
        std::lock_guard<std::mutex> alone(mutex_);
        if (sequence >= program_.sequences()) throw std::invalid_argument("no such sequence");
        if (count > program_.positions - prompt_) throw std::invalid_argument("count must be within the positions");
        program_.truncate(sequence, count ? prompt_ + count : 0);
    }

    // Pages in use, pages at most (0 for no limit), positions and bytes of a page.
    std::tuple<size_t, size_t, size_t, size_t> pages() {
        WithoutGil release;
        std::lock_guard<std::mutex> alone(mutex_);
        return {program_.pages().held(), program_.pages().limit(), PAGE, program_.pages().page_bytes()};
    }

    // The numbers of a sequence's pages: those that follow each other are neighbors in memory.
    nb::list page_numbers(size_t sequence) {
        nb::list found;
        std::lock_guard<std::mutex> alone(mutex_);
        if (sequence >= program_.sequences()) throw std::invalid_argument("no such sequence");
        for (const size_t number : program_.pages().numbers(sequence)) found.append(number);
        return found;
    }

    void grow(size_t sequences) {
        WithoutGil release;
        std::lock_guard<std::mutex> alone(mutex_);
        if (sequences > program_.sequences()) program_.grow(sequences);
    }

private:
    static void same(size_t a, size_t b) {
        if (a == b) return;
        throw std::invalid_argument("widths " + std::to_string(a) + " and " + std::to_string(b) + " differ");
    }
    template <class... Arrays>
    void keep(Arrays... arrays) {
        (kept_.append(nb::cast(arrays)), ...);
    }

    bool ended_ = false;  // after `last` there are only the rows that are kept
    Program program_;
    nb::list kept_;
    std::mutex mutex_;
    size_t tokens_ = 0, prompt_ = 0, source_width_ = 0;
    std::vector<size_t> sources_;  // positions of each that has been read
};

// y (R, outputs) = x (R, inputs) Wᵀ, for tests of the formats. x and y have rows of whole panels.
void multiply(Matrix y, ConstMatrix x, Words words, int format) {
    const Weights weights = weights_of(words, format, y.shape(1), x.shape(1));
    const size_t R = x.shape(0), N = y.shape(1), K = x.shape(1);
    pointer(y, "y", R * N);
    if (N % PANEL || K % PANEL) throw std::invalid_argument("rows must be whole panels");
    WithoutGil release;
    std::vector<float> product(R * PANEL);
    std::vector<Rounded> rounded(in_blocks(weights.format) ? R * K / GROUP : 0);
    if (!rounded.empty()) blocks().round(rounded.data(), x.data(), R * K);
    for (size_t p = 0; p < weights.panels(); ++p) {
        if (in_blocks(weights.format))
            blocks().multiply(product.data(), rounded.data(), K / GROUP, weights.panel(p), weights.format, R, K);
        else
            panels().multiply(product.data(), x.data(), K, weights.panel(p), weights.format, R, K);
        decode().finish(y.data() + p * PANEL, N, product.data(), nullptr, Activation::none, false, R);
    }
}

// Space for the outputs from `first` on of a matrix of `outputs`, `rows` of them.
void check_rows(const Array<int32_t, 1>& words, int format, size_t first, size_t rows, size_t outputs, size_t inputs) {
    if (outputs % PANEL || first > outputs || rows > outputs - first)
        throw std::invalid_argument("outputs must be whole panels, and have those of weight from first on");
    const Weights packed{words.data(), format_of(format), outputs, inputs};
    check_blocks(packed.format, inputs);
    pointer(words, "words", packed.panels() * panel_words(packed.format, packed.K()));
}

// weight (rows, inputs). False if one is not finite, or its block has no scale in fp16.
bool pack_rows(Array<int32_t, 1> words, ConstMatrix weight, int format, size_t first, size_t outputs) {
    const size_t rows = weight.shape(0), inputs = weight.shape(1);
    if (format_of(format) > Format::q4_1) throw std::invalid_argument("the format is one of files alone");
    check_rows(words, format, first, rows, outputs, inputs);
    return without_gil([&] { return pack(words.data(), weight.data(), format_of(format), first, rows, inputs); });
}

// blocks (rows, bytes), in a format of blocks
void pack_rows_of_blocks(Array<int32_t, 1> words, Array<const uint8_t, 2> blocks, int format, size_t first,
                         size_t outputs) {
    const size_t rows = blocks.shape(0), bytes = blocks.shape(1), block = block_bytes(format_of(format));
    if (!in_blocks(format_of(format)) || !bytes || bytes % block)
        throw std::invalid_argument("rows must be whole blocks of a format that has them");
    const size_t inputs = bytes / block * block_inputs(format_of(format));
    check_rows(words, format, first, rows, outputs, inputs);
    without_gil([&] { pack_blocks(words.data(), blocks.data(), format_of(format), first, rows, inputs); });
}

}  // namespace

void bind_program(nb::module_& m) {
    nb::class_<Checked>(m, "Program")
        .def(nb::init<size_t, size_t, size_t, int>(), "sequences"_a, "positions"_a, "cache_bytes"_a = 0, "cache"_a = 0)
        .def("buffer", &Checked::buffer, "width"_a)
        .def("embedding", &Checked::embedding, "out"_a, "words"_a.noconvert(), "format"_a, "tokens"_a, "scale"_a,
             "position"_a.noconvert().none(), "prompt"_a.noconvert().none() = nb::none())
        .def("layernorm", &Checked::layernorm, "out"_a, "x"_a, "gamma"_a.noconvert(), "beta"_a.noconvert(), "eps"_a)
        .def("rmsnorm", &Checked::rmsnorm, "out"_a, "x"_a, "gamma"_a.noconvert(), "eps"_a)
        .def("linear", &Checked::linear, "out"_a, "x"_a, "words"_a.noconvert(), "format"_a,
             "bias"_a.noconvert().none(), "activation"_a, "add"_a, "offset"_a = 0, "outputs"_a = nb::none())
        .def("attention", &Checked::attention, "out"_a, "qkv"_a, "heads"_a, "kv_heads"_a, "scale"_a,
             "cos"_a.noconvert().none(), "sin"_a.noconvert().none(), "gamma_q"_a.noconvert().none() = nb::none(),
             "gamma_k"_a.noconvert().none() = nb::none(), "eps"_a = 0.0f, "bias"_a.noconvert().none() = nb::none(), "prefix_keys"_a.noconvert().none() = nb::none(),
             "prefix_values"_a.noconvert().none() = nb::none())
        .def("cross_attention", &Checked::cross_attention, "out"_a, "q"_a, "heads"_a, "scale"_a, "memory_width"_a,
             "words"_a.noconvert(), "format"_a, "bias"_a.noconvert().none())
        .def("swiglu", &Checked::swiglu, "out"_a, "x"_a)
        .def("gated", &Checked::gated, "out"_a, "x"_a, "activation"_a)
        .def("add", &Checked::add, "out"_a, "a"_a, "b"_a)
        .def("scale", &Checked::scale, "out"_a, "x"_a, "factor"_a)
        .def("activation", &Checked::activation, "out"_a, "x"_a, "activation"_a)
        .def("recurrent", &Checked::recurrent, "out"_a, "gates"_a, "cell"_a, "words"_a.noconvert(),
             "candidate"_a.noconvert().none(), "format"_a, "bias"_a.noconvert().none())
        .def("last", &Checked::last, "out"_a, "x"_a)
        .def("run", &Checked::run, "result"_a.noconvert(), "tokens"_a.noconvert(), "sequences"_a.noconvert(),
             "counts"_a.noconvert(), "past"_a.noconvert(), "sources"_a.noconvert().none() = nb::none(),
             "kept"_a.noconvert().none() = nb::none())
        .def("read", &Checked::read, "memory"_a.noconvert(), "counts"_a.noconvert())
        .def("grow", &Checked::grow, "sequences"_a)
        .def("copy", &Checked::copy, "source"_a, "target"_a, "count"_a)
        .def("truncate", &Checked::truncate, "sequence"_a, "count"_a)
        .def("pages", &Checked::pages)
        .def("page_numbers", &Checked::page_numbers, "sequence"_a);
    nb::exception<OutOfPages>(m, "OutOfPages", PyExc_RuntimeError);
    def(m, "panels_pack", pack_rows, "words", "weight", "format", "first", "outputs");
    def(m, "panels_pack_blocks", pack_rows_of_blocks, "words", "blocks", "format", "first", "outputs");
    def(m, "panels_multiply", multiply, "y", "x", "words", "format");
}

}  // namespace chainrule
