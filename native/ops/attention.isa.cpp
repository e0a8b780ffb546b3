// Scaled dot-product attention, block by block: the T × S matrix of weights is never stored.
// Derivation: docs/derivations/attention.md
//
// Every GEMM runs on full tiles: operands are copied to scratch and padded with zeros, and what a tile finds goes straight
// to its place in the result. Tiles that the causal mask hides are skipped. Sums over keys and queries continue from block
// to block in order, so of the sizes below only two affect the bits of a result: KEYS, by the rescaling in forward, and
// FEW_QUERIES, by another order of summation.
#include "ops/attention.hpp"

#include "gemm/gemm.hpp"
#include "gemm/tile.hpp"
#include "simd/vecmath.hpp"

namespace chainrule::CHAINRULE_ISA {
namespace {

constexpr size_t round_up(size_t n, size_t step) {
    return (n + step - 1) / step * step;
}
constexpr size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

constexpr size_t KEYS = 192;                        // keys per block
constexpr size_t QUERIES = 8 * MR;                  // queries per block in forward
constexpr size_t MANY_QUERIES = round_up(256, MR);  // and in backward
constexpr size_t FEW_QUERIES = 4;                   // up to here packing keys costs more than it saves
constexpr size_t SCORES_ROW = KEYS + LANES;         // an odd number of cache lines, with space for a tile of keys
constexpr float HIDDEN = -__builtin_inff();

// Rows an odd number of cache lines apart fall into different sets of a cache.
constexpr size_t row_stride(size_t n) {
    const size_t whole = round_up(n, NR);
    return whole / LANES % 2 ? whole : whole + LANES;
}

// Hands out parts of scratch; without memory it only counts.
struct Space {
    float* memory;
    size_t used = 0;
    float* take(size_t floats) {
        float* part = memory ? memory + used : nullptr;
        used += round_up(floats, LANES);
        return part;
    }
};

// How many keys query t sees.
INLINE size_t visible(const Attention& call, size_t t) {
    if (!call.causal) return call.S;
    return t + 1 + call.S <= call.T ? 0 : smaller(call.S, t + 1 + call.S - call.T);
}

// The first query that sees key s.
INLINE size_t first_query(const Attention& call, size_t s) {
    return call.causal && s + call.T > call.S ? s + call.T - call.S : 0;
}

// How many of `count` queries the block that begins at query t has. A tile that is not full comes first: under a causal mask
// the first queries see few keys.
INLINE size_t block_rows(size_t t, size_t count, size_t most) {
    return t < count % MR ? count % MR - t : smaller(most, count - t);
}

// A block of scores: queries t .. t + rows against keys s .. s + keys.
struct Block {
    const Attention& call;
    size_t b, h, t, rows, s, keys;

    // How many of the keys query t + r sees.
    INLINE size_t seen(size_t r) const {
        const size_t last = visible(call, smaller(t + r, call.T - 1));
        return last <= s ? 0 : smaller(keys, last - s);
    }
    // How many keys any row of the tile that starts at row r sees.
    INLINE size_t columns(size_t r) const { return seen(r + MR - 1); }
};

// B (K, N) as panels of NR columns.
void pack_columns(float* packed, View b_kn, size_t K, size_t N) {
    gemm_kernels.pack_b(packed, NR * K, b_kn, K, N, Precision::fp32);
}

// out = factor · in
void copy_rows(float* out, size_t out_row, const float* in, size_t in_row, float factor, size_t rows, size_t n) {
    const size_t whole = n - n % LANES;
    for (size_t r = 0; r < rows; ++r, out += out_row, in += in_row) {
        for (size_t i = 0; i < whole; i += LANES) store(out + i, load(in + i) * fill(factor));
        for (size_t i = whole; i < n; ++i) out[i] = in[i] * factor;
    }
}

void zero(float* out, size_t n) {  // n is a multiple of LANES
    for (size_t i = 0; i < n; i += LANES) store(out + i, fill(0));
}

// The same into scratch, padded with zeros to whole tiles.
void take_rows(float* out, size_t out_row, const float* in, size_t in_row, float factor, size_t rows, size_t n) {
    const size_t whole = n - n % LANES, filled = round_up(n, NR);
    for (size_t r = 0; r < rows; ++r) zero(out + r * out_row + whole, filled - whole);
    copy_rows(out, out_row, in, in_row, factor, rows, n);
    zero(out + rows * out_row, (round_up(rows, MR) - rows) * out_row);
}

void clear_rows(float* out, size_t out_row, size_t rows, size_t n) {
    for (size_t r = 0; r < rows; ++r, out += out_row)
        for (size_t i = 0; i < n; i += LANES) store_next(out + i, fill(0), n - i);
}

// Where a tile lies in a matrix: at its ends with fewer than MR rows or NR columns.
struct Place {
    float* data;
    size_t row, rows, columns;
};

template <class Body>  // body(row, vector, its place in memory, how many of its elements there are, or more)
INLINE void for_place(Tile<MR>& tile, const Place& place, Body body) {
    if (place.rows >= MR && place.columns >= NR)
        return for_vectors(tile, [&](size_t i, size_t j, Vec& sum) { body(i, sum, place.data + i * place.row + j, LANES); });
    for_vectors(tile, [&](size_t i, size_t j, Vec& sum) {
        if (i < place.rows && j < place.columns) body(i, sum, place.data + i * place.row + j, place.columns - j);
    });
}
INLINE void load_tile(Tile<MR>& tile, const Place& place) {
    for_place(tile, place, [](size_t, Vec& sum, const float* from, size_t n) { sum = load_next(from, n); });
}
INLINE void store_tile(Tile<MR>& tile, const Place& place) {
    for_place(tile, place, [](size_t, Vec& sum, float* to, size_t n) { store_next(to, sum, n); });
}

// One tile of C = or += A B.
INLINE void product(const Place& c, bool adds, const float* a, size_t a_row, size_t a_k, const float* b, size_t b_k,
                    size_t K) {
    Tile<MR> tile;
    clear(tile);
    if (adds) load_tile(tile, c);
    multiply(tile, a, a_row, a_k, b, b_k, K);
    store_tile(tile, c);
}

// finish(row, column, vector) for the visible part of a bᵀ in the block: rows of a times packed columns of b.
template <class Finish>
INLINE void each_product(const Block& block, const float* a, size_t a_row, const float* b, size_t K, Finish finish) {
    for (size_t j = 0; j < block.keys; j += NR)
        for (size_t r = 0; r < block.rows; r += MR) {
            const size_t seen = block.columns(r);
            auto product = [&](auto tile) {
                clear(tile);
                multiply(tile, a + r * a_row, a_row, 1, b + j * K, NR, K);
                for_vectors(tile, [&](size_t i, size_t v, Vec& out) { finish(r + i, j + v, out); });
            };
            if (seen > j + LANES || (seen > j && NR == LANES))
                product(Tile<MR>());
            else if (seen > j)
                product(Tile<MR, 1>());  // the mask hides the rest of the tile
        }
}

// Z = s q kᵀ, the queries already scaled                                                                     [AT.1]
void scores(float* z, const Block& block, const float* queries, size_t query_row, const float* keys) {
    each_product(block, queries, query_row, keys, block.call.D,
                 [&](size_t r, size_t j, Vec product) { store(z + r * SCORES_ROW + j, product); });
}

// Masks row r of the scores: adds the mask, and writes -inf where the query does not see the key.
INLINE void hide(float* z, const Block& block, size_t r, size_t seen, size_t end) {
    const Attention& call = block.call;
    const auto first = [&](const size_t* stride) {
        return block.b * stride[0] + block.h * stride[1] + (block.t + r) * stride[2] + block.s * stride[3];
    };
    const auto in_vectors = [&](size_t step) { return step == 1 ? seen - seen % LANES : 0; };
    if (call.allowed) {
        const uint8_t* allowed = call.allowed + first(call.allowed_stride);
        const size_t step = call.allowed_stride[3], whole = in_vectors(step);
        for (size_t j = 0; j < whole; j += LANES)
            store(z + j, select(fill_int(0) - load_bools(allowed + j), load(z + j), fill(HIDDEN)));
        for (size_t j = whole; j < seen; ++j) z[j] = allowed[j * step] ? z[j] : HIDDEN;
    }
    if (call.added) {
        const float* added = call.added + first(call.added_stride);
        const size_t step = call.added_stride[3], whole = in_vectors(step);
        for (size_t j = 0; j < whole; j += LANES) store(z + j, load(z + j) + load(added + j));
        for (size_t j = whole; j < seen; ++j) z[j] += added[j * step];
    }
    for (size_t j = seen - seen % LANES; j < end; j += LANES)
        store(z + j, load_next(z + j, j < seen ? seen - j : 0, HIDDEN));
}

// Dropout of row r of the weights; the mask is a function of the flat position in (B, H, T, S).
void drop(float* out, const float* weights, float scale, const Block& block, size_t r, size_t end) {
    const Attention& call = block.call;
    const uint64_t row = ((uint64_t(block.b) * call.H + block.h) * call.T + block.t + r) * call.S + block.s;
    for (size_t j = 0; j < end; j += LANES)
        store(out + j, load(weights + j) * select(kept(call.keep, row + j), fill(scale), fill(0)));
}

// The online softmax of the queries of a block: what is known of each row after some blocks of keys.
struct Running {
    float top[QUERIES];    // the largest score so far
    float total[QUERIES];  // the sum of e^(z - top) so far
};

// Turns the scores of a block into weights e^(z - top), and rescales the earlier sums to the new top         [AT.14]
void soften(Running& now, float* weights, float* sums, size_t value_row, const Block& block) {
    float shift[QUERIES];
    for (size_t r = 0; r < block.rows; ++r) {
        float* z = weights + r * SCORES_ROW;
        const size_t seen = block.seen(r), end = round_up(seen, LANES);
        hide(z, block, r, seen, end);
        Vec highest = fill(now.top[r]);
        for (size_t j = 0; j < end; j += LANES) highest = max(highest, load(z + j));
        const float top = largest(highest);
        shift[r] = top == HIDDEN ? 0 : top;
        if (now.top[r] < top && now.total[r] != 0) {
            const Vec factor = exp_negative(fill(now.top[r] - top));
            for (size_t c = 0; c < block.call.Dv; c += LANES)
                store(sums + r * value_row + c, load(sums + r * value_row + c) * factor);
            now.total[r] *= factor.part[0][0];
        }
        now.top[r] = top;
    }
    for (size_t r = 0; r < block.rows; ++r) {
        float* z = weights + r * SCORES_ROW;
        const size_t end = round_up(block.seen(r), LANES), used = block.columns(r - r % MR);
        Vec total = fill(0);
        for (size_t j = 0; j < end; j += LANES) {
            const Vec weight = exp_negative(load(z + j) - fill(shift[r]));
            total = total + weight;
            store(z + j, weight);
        }
        now.total[r] += sum(total);
        if (block.call.dropout) drop(z, z, 1, block, r, end);
        for (size_t j = end; j < used; j += LANES) store(z + j, fill(0));  // other rows of the tile use these
    }
}

struct ForwardSpace {
    float *keys, *values, *queries, *weights, *sums;
    size_t query_row, value_row, used;

    ForwardSpace(const Attention& call, float* memory) {
        Space space{memory};
        query_row = row_stride(call.D);
        value_row = row_stride(call.Dv);
        keys = space.take(round_up(call.S, NR) * call.D);
        values = space.take(round_up(call.Dv, NR) * call.S);
        queries = space.take(QUERIES * query_row);
        weights = space.take(QUERIES * SCORES_ROW);
        sums = space.take(QUERIES * value_row);
        used = space.used;
    }
};

// The keys and values of one key head, packed or in place.
struct Context {
    const float* packed_keys;  // or null
    const float* keys;
    const float* values;  // column c of value s is c · value_panel + s · value_row away
    size_t value_panel, value_row;
};

void forward_block(Heads<float> o, float* lse_bht, const ForwardSpace& at, const Context& from, Block block) {
    const Attention& call = block.call;
    const size_t rows = block.rows, seen_by_last = visible(call, block.t + rows - 1);
    float* lse = lse_bht + (block.b * call.H + block.h) * call.T + block.t;
    if (seen_by_last == 0) {
        clear_rows(o.at(block.b, block.h, block.t), o.row, rows, call.Dv);
        for (size_t r = 0; r < rows; ++r) lse[r] = 0;
    }
    take_rows(at.queries, at.query_row, call.q.at(block.b, block.h, block.t), call.q.row, call.scale, rows, call.D);
    Running now;
    for (size_t r = 0; r < rows; ++r) now.top[r] = HIDDEN, now.total[r] = 0;

    for (block.s = 0; block.s < seen_by_last; block.s += KEYS) {
        block.keys = smaller(KEYS, seen_by_last - block.s);
        if (from.packed_keys)
            scores(at.weights, block, at.queries, at.query_row, from.packed_keys + block.s * call.D);
        else
            gemm_kernels.dot_rows(at.weights, SCORES_ROW, at.queries, at.query_row, from.keys + block.s * call.k.row,
                                  call.k.row, nullptr, false, rows, block.keys, call.D);
        soften(now, at.weights, at.sums, at.value_row, block);
        const bool last = block.s + KEYS >= seen_by_last;
        float factor[QUERIES];
        for (size_t r = 0; r < rows && last; ++r) {
            const bool empty = now.total[r] == 0;  // the query sees no key: its weights are 0             [AT.12]
            const float total = empty ? 1 : now.total[r];
            factor[r] = call.keep_scale / total;
            lse[r] = empty ? 0 : now.top[r] + __builtin_logf(total);  // [AT.4]
        }
        for (size_t c = 0; c < call.Dv; c += NR)  // o = A v                                           [AT.3]
            for (size_t r = 0; r < rows; r += MR) {
                const Place sums = {at.sums + r * at.value_row + c, at.value_row, MR, NR};
                Tile<MR> tile;
                clear(tile);
                if (block.s > 0) load_tile(tile, sums);
                multiply(tile, at.weights + r * SCORES_ROW, SCORES_ROW, 1,
                         from.values + c * from.value_panel + block.s * from.value_row, from.value_row, block.columns(r));
                if (!last) {
                    store_tile(tile, sums);
                    continue;
                }
                const Place out = {o.at(block.b, block.h, block.t + r) + c, o.row, rows - r, call.Dv - c};
                for_place(tile, out, [&](size_t i, Vec& sum, float* to, size_t n) {
                    store_next(to, sum * fill(factor[r + i]), n);
                });
            }
    }
}

void forward(Heads<float> o, float* lse_bht, const Attention& call, size_t b, size_t hk, size_t t, size_t count,
             float* scratch) {
    const ForwardSpace at(call, scratch);
    const size_t seen = visible(call, t + count - 1), group = call.H / call.Hk;
    Context from = {nullptr, call.k.at(b, hk, 0), call.v.at(b, hk, 0), 1, call.v.row};
    const bool few = call.T <= FEW_QUERIES;  // by T, not by `count`: a row must not depend on how T was cut
    if (!few) {
        pack_columns(at.keys, {from.keys, 1, call.k.row}, call.D, seen);
        from.packed_keys = at.keys;
    }
    if (!few || call.Dv % NR) {
        pack_columns(at.values, {from.values, call.v.row, 1}, seen, call.Dv);
        from.values = at.values, from.value_panel = seen, from.value_row = NR;
    }
    for (size_t h = hk * group; h < (hk + 1) * group; ++h)
        for (size_t i = 0, rows; i < count; i += rows) {
            rows = block_rows(i, count, QUERIES);
            forward_block(o, lse_bht, at, from, {call, b, h, t + i, rows, 0, 0});
        }
}

struct BackwardSpace {
    float *keys, *values, *key_rows;  // of `count` keys
    float *queries, *dy, *dot;        // of all queries of a head
    float *weights, *dropped;         // of a block
    size_t query_row, value_row, used;

    BackwardSpace(const Attention& call, size_t count, float* memory) {
        Space space{memory};
        query_row = row_stride(call.D);
        value_row = row_stride(call.Dv);
        const size_t columns = round_up(count, NR), T = round_up(call.T, MR);
        keys = space.take(columns * call.D);
        values = space.take(columns * call.Dv);
        key_rows = space.take((count + MR) * query_row);
        queries = space.take(T * query_row);
        dy = space.take(T * value_row);
        dot = space.take(T);
        weights = space.take(smaller(MANY_QUERIES, T) * SCORES_ROW);
        dropped = call.dropout ? space.take(smaller(MANY_QUERIES, T) * SCORES_ROW) : weights;
        used = space.used;
    }
};

// Recompute the weights A = e^(Z - L), and in `dropped` the same after dropout                                [AT.5]
void recompute_weights(const BackwardSpace& at, const float* lse, const Block& block) {
    const Attention& call = block.call;
    for (size_t r = 0; r < block.rows; ++r) {
        const size_t used = block.columns(r - r % MR);
        if (used == 0) continue;
        float *z = at.weights + r * SCORES_ROW, *dropped = at.dropped + r * SCORES_ROW;
        const size_t end = round_up(used, LANES);
        hide(z, block, r, block.seen(r), end);
        const Vec shift = fill(lse[block.t + r]);
        for (size_t j = 0; j < end; j += LANES) store(z + j, exp_negative(load(z + j) - shift));
        if (call.dropout) drop(dropped, z, call.keep_scale, block, r, end);
        // a tile of keys may begin at the last of these and extend beyond
        for (size_t j = end; j < used + MR; j += LANES) {
            store(z + j, fill(0));
            store(dropped + j, fill(0));
        }
    }
    const size_t beyond = round_up(block.rows, MR) - block.rows;  // rows of the last tile that belong to the next block
    zero(at.weights + block.rows * SCORES_ROW, beyond * SCORES_ROW);
    zero(at.dropped + block.rows * SCORES_ROW, beyond * SCORES_ROW);
}

// out (keys, n) = or += Wᵀ x for a block W of weights and the rows x of its queries. The first block of queries that sees
// a key assigns, others add.
INLINE void add_to_keys(Heads<float> out, const float* w, const Block& block, const float* x, size_t row, size_t n) {
    const size_t group = block.call.H / block.call.Hk, hk = block.h / group;
    for (size_t c = 0; c < n; c += NR)
        for (size_t j = 0; j < block.keys; j += MR) {
            const size_t seeing = first_query(block.call, block.s + j);
            const size_t r = seeing <= block.t ? 0 : seeing - block.t;
            if (r >= block.rows) continue;
            const bool begun = block.h > hk * group || seeing < block.t;
            product({out.at(block.b, hk, block.s + j) + c, out.row, block.keys - j, n - c}, begun, w + r * SCORES_ROW + j, 1,
                    SCORES_ROW, x + r * row + c, row, block.rows - r);
        }
}

// Adds dZ to the sums along diagonals of its head, a row of the block after another                           [RA.3]
void add_to_diagonals(float* diagonals_n, const float* dZ, const Block& block) {
    for (size_t r = 0; r < block.rows; ++r, dZ += SCORES_ROW) {
        float* out = diagonals_n + block.call.T - 1 - (block.t + r) + block.s;
        const size_t seen = block.seen(r), whole = seen - seen % LANES;
        for (size_t j = 0; j < whole; j += LANES) store(out + j, load(out + j) + load(dZ + j));
        for (size_t j = whole; j < seen; ++j) out[j] += dZ[j];
    }
}

// `first` is the first key of the unit.
void backward_block(const AttentionGradient& gradient, const BackwardSpace& at, size_t first, const Block& block) {
    const Attention& call = block.call;
    const size_t s = block.s - first;
    const float *queries = at.queries + block.t * at.query_row, *dy = at.dy + block.t * at.value_row;
    scores(at.weights, block, queries, at.query_row, at.keys + s * call.D);
    recompute_weights(at, gradient.lse_bht + (block.b * call.H + block.h) * call.T, block);
    if (gradient.dv.data)  // forward was: o = A v                                                             [AT.6]
        add_to_keys(gradient.dv, at.dropped, block, dy, at.value_row, call.Dv);
    if (!gradient.dq.data && !gradient.dk.data && !gradient.diagonals_hn) return;

    auto score_gradient = [&](size_t r, size_t j, Vec dA) {  // forward was: A = softmax(Z); overwrites A by dZ
        const size_t place = r * SCORES_ROW + j;
        const Vec A = load(at.weights + place), dot = fill(at.dot[block.t + r]);
        const Vec dZ = call.dropout ? load(at.dropped + place) * dA - A * dot  // [AT.13]
                                    : A * (dA - dot);                          // [AT.8]
        store(at.weights + place, dZ);
    };
    each_product(block, dy, at.value_row, at.values + s * call.Dv, call.Dv,
                 score_gradient);  // forward was: o = A v, so dA = do vᵀ                                      [AT.7]
    if (gradient.dq.data) {  // forward was: Z = s q kᵀ                                                        [AT.10]
        float* const dq = gradient.dq.at(block.b, block.h, block.t);
        for (size_t c = 0; c < call.D; c += NR)
            for (size_t r = 0; r < block.rows; r += MR)
                product({dq + r * gradient.dq.row + c, gradient.dq.row, block.rows - r, call.D - c}, s > 0,
                        at.weights + r * SCORES_ROW, SCORES_ROW, 1, at.key_rows + s * at.query_row + c, at.query_row,
                        block.columns(r));
    }
    if (gradient.dk.data)  // [AT.11]
        add_to_keys(gradient.dk, at.weights, block, queries, at.query_row, call.D);
    if (gradient.diagonals_hn)
        add_to_diagonals(gradient.diagonals_hn + block.h * (call.T + call.S - 1), at.weights, block);
}

// Copies the queries of one head, scaled, and the incoming gradient; do · o of each row                      [AT.9]
void take_queries(const BackwardSpace& at, const AttentionGradient& gradient, const Attention& call, size_t b,
                  size_t h) {
    const size_t T = call.T, filled = round_up(T, MR);
    take_rows(at.queries, at.query_row, call.q.at(b, h, 0), call.q.row, call.scale, T, call.D);
    take_rows(at.dy, at.value_row, gradient.dy.at(b, h, 0), gradient.dy.row, 1, T, call.Dv);
    const size_t whole = call.Dv - call.Dv % LANES;
    for (size_t t = 0; t < T; ++t) {
        const float *o = gradient.o.at(b, h, t), *dy = at.dy + t * at.value_row;
        Vec total = fill(0);
        for (size_t c = 0; c < whole; c += LANES) total = fma(load(o + c), load(dy + c), total);
        float dot = sum(total);
        for (size_t c = whole; c < call.Dv; ++c) dot += o[c] * dy[c];
        at.dot[t] = dot;
    }
    for (size_t t = T; t < filled; ++t) at.dot[t] = 0;
}

// The first block of queries that sees key s begins here: at a whole tile, or at the one before them.
INLINE size_t first_block(const Attention& call, size_t s) {
    const size_t begin = first_query(call, s), lead = call.T % MR;
    return begin < lead ? 0 : begin - (begin - lead) % MR;
}

void backward(const AttentionGradient& gradient, const Attention& call, size_t b, size_t hk, size_t s, size_t count,
              float* scratch) {
    const BackwardSpace at(call, count, scratch);
    const size_t group = call.H / call.Hk, end = s + count;
    pack_columns(at.keys, {call.k.at(b, hk, s), 1, call.k.row}, call.D, count);
    pack_columns(at.values, {call.v.at(b, hk, s), 1, call.v.row}, call.Dv, count);
    take_rows(at.key_rows, at.query_row, call.k.at(b, hk, s), call.k.row, call.scale, count, call.D);
    for (size_t h = hk * group; h < (hk + 1) * group; ++h) {
        take_queries(at, gradient, call, b, h);
        if (gradient.dq.data)  // queries that see none of these keys
            clear_rows(gradient.dq.at(b, h, 0), gradient.dq.row, count ? first_block(call, s) : call.T, call.D);
        for (size_t i = s; i < end; i += KEYS) {
            for (size_t t = first_block(call, i), rows; t < call.T; t += rows) {
                rows = block_rows(t, call.T, MANY_QUERIES);
                backward_block(gradient, at, s, {call, b, h, t, rows, i, smaller(KEYS, end - i)});
            }
        }
    }
    if (call.T > 0) return;
    if (gradient.dk.data) clear_rows(gradient.dk.at(b, hk, s), gradient.dk.row, count, call.D);
    if (gradient.dv.data) clear_rows(gradient.dv.at(b, hk, s), gradient.dv.row, count, call.Dv);
}

size_t forward_scratch(const Attention& call) {
    return ForwardSpace(call, nullptr).used;
}
size_t backward_scratch(const Attention& call, size_t count) {
    return BackwardSpace(call, count, nullptr).used;
}

}  // namespace

const AttentionKernels attention = {forward, backward, forward_scratch, backward_scratch};

}  // namespace chainrule::CHAINRULE_ISA
