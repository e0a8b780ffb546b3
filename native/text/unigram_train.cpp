// The second half of training Unigram: probabilities by expectation maximization, and pruning.
#include <algorithm>
#include <cmath>

#include "runtime/pool.hpp"
#include "text/unigram_training.hpp"

namespace chainrule {
namespace {

constexpr size_t BLOCKS = 16;        // of words; each has its own sums, so their number is part of the result
constexpr double LEAST_COUNT = 0.5;  // a piece with a lower expected count is dropped

// ψ(x), the derivative of log Γ: exp ψ(c) is a little below c, which makes rare pieces rarer (a Bayesian M step).
double digamma(double x) {
    double sum = 0;
    for (; x < 7; ++x) sum -= 1 / x;
    const double y = 1 / (x * x);
    return sum + std::log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y / 240)));
}

class Training {
public:
    Training(const Words& words, std::vector<Seed> seeds, size_t letters) : letters_(letters) {
        double total = 0;
        for (const Seed& seed : seeds) total += seed.score;
        for (Seed& seed : seeds) {
            pieces_.push_back(std::move(seed.text));
            scores_.push_back(std::log(seed.score) - std::log(total));
        }
        std::vector<uint32_t> order(pieces_.size());
        for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return pieces_[a] < pieces_[b]; });
        std::vector<std::string_view> sorted;
        for (uint32_t i : order) sorted.push_back(pieces_[i]);
        const Trie trie(sorted);
        for (const auto& [word, count] : words) {
            corpus_.add(word, trie);
            weights_.push_back(static_cast<double>(count));
        }
        for (const std::string& piece : pieces_) own_.add(piece, trie);
        corpus_.keep(order);  // the trie numbers pieces in sorted order
        own_.keep(order);
    }

    size_t size() const { return pieces_.size(); }

    void improve() {
        std::vector<double> probability(size());
        for (size_t i = 0; i < size(); ++i) probability[i] = std::exp(scores_[i]);
        std::vector<double> expected = by_blocks([&](double* sum, size_t first, size_t last) {
            Expectation expectation;
            for (size_t word = first; word < last; ++word)
                expectation.add(sum, corpus_.edges(word), corpus_.bytes(word), weights_[word], probability.data());
        });
        std::vector<bool> kept(size());
        double total = 0;
        for (size_t i = 0; i < size(); ++i) {
            if (i < letters_) expected[i] = std::max(expected[i], LEAST_COUNT);
            kept[i] = expected[i] >= LEAST_COUNT;
            if (kept[i]) total += expected[i];
        }
        for (size_t i = 0; i < size(); ++i)
            if (kept[i]) scores_[i] = digamma(expected[i]) - digamma(total);
        drop(kept);
    }

    // Keeps `wanted` pieces: those whose removal would lower the likelihood of the text most.
    void prune(size_t wanted) {
        const std::vector<double> used = by_blocks([&](double* sum, size_t first, size_t last) {
            BestCut best;
            for (size_t word = first; word < last; ++word)
                for (uint32_t piece : best.cut(corpus_.edges(word), corpus_.bytes(word), scores_.data()))
                    sum[piece] += weights_[word];
        });
        double total = 0;
        for (double count : used) total += count;
        std::vector<float> loss(size(), 0);  // rounded, so that ties are ties on every machine
        for_row_blocks(size(), 16, 4096, [&](size_t, size_t first, size_t count) {
            BestCut best;
            for (size_t i = std::max(first, letters_); i < first + count; ++i)
                if (used[i] > 0) loss[i] = static_cast<float>(cost(best, i, used, total));
        });
        std::vector<uint32_t> order;
        for (size_t i = letters_; i < size(); ++i)
            if (used[i] > 0) order.push_back(static_cast<uint32_t>(i));
        const size_t keep = std::min(order.size(), wanted > letters_ ? wanted - letters_ : 0);
        std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
            return loss[a] != loss[b] ? loss[a] > loss[b] : pieces_[a] < pieces_[b];
        });
        std::vector<bool> kept(size());
        for (size_t i = 0; i < letters_; ++i) kept[i] = true;
        for (size_t i = 0; i < keep; ++i) kept[order[i]] = true;
        drop(kept);
    }

    UnigramPieces best(size_t wanted) {
        std::vector<uint32_t> order;
        for (size_t i = letters_; i < size(); ++i) order.push_back(static_cast<uint32_t>(i));
        auto better = [&](uint32_t a, uint32_t b) {
            const float left = static_cast<float>(scores_[a]), right = static_cast<float>(scores_[b]);
            return left != right ? left > right : pieces_[a] < pieces_[b];
        };
        std::sort(order.begin(), order.end(), better);
        order.resize(std::min(order.size(), wanted > letters_ ? wanted - letters_ : 0));
        for (size_t i = 0; i < letters_; ++i) order.push_back(static_cast<uint32_t>(i));
        std::sort(order.begin(), order.end(), better);
        UnigramPieces result;
        for (uint32_t i : order) {
            result.pieces.push_back(pieces_[i]);
            result.scores.push_back(scores_[i]);
        }
        return result;
    }

private:
    // How much the log likelihood falls if a piece is replaced by its best segmentation into others.
    double cost(BestCut& best, size_t piece, const std::vector<double>& used, double total) const {
        const std::vector<uint32_t>& others =
            best.cut(own_.edges(piece), own_.bytes(piece), scores_.data(), static_cast<uint32_t>(piece));
        const double count = used[piece];
        const double grown = std::log(total + count * static_cast<double>(others.size() - 1));
        double after = 0;
        for (uint32_t other : others) after += std::log(used[other] + count) - grown;
        return count * (std::log(count) - std::log(total) - after);
    }

    template <class Body>  // body(sums by piece, first word, one past the last)
    std::vector<double> by_blocks(Body&& body) const {
        const size_t words = corpus_.words();
        std::vector<std::vector<double>> sums(BLOCKS);
        parallel_for(BLOCKS, [&](size_t block) {
            sums[block].assign(size(), 0);
            body(sums[block].data(), words * block / BLOCKS, words * (block + 1) / BLOCKS);
        });
        for (size_t block = 1; block < BLOCKS; ++block)
            for (size_t i = 0; i < size(); ++i) sums[0][i] += sums[block][i];
        return sums[0];
    }

    void drop(const std::vector<bool>& kept) {
        std::vector<uint32_t> renamed(size(), Trie::NONE);
        uint32_t out = 0;
        for (size_t i = 0; i < size(); ++i) {
            if (!kept[i]) continue;
            renamed[i] = out;
            if (out != i) pieces_[out] = std::move(pieces_[i]);
            scores_[out++] = scores_[i];
        }
        pieces_.resize(out);
        scores_.resize(out);
        own_.keep_words(renamed);
        own_.keep(renamed);
        corpus_.keep(renamed);
    }

    size_t letters_;  // the first pieces; they are never pruned
    std::vector<std::string> pieces_;
    std::vector<double> scores_, weights_;
    Lattice corpus_, own_;  // of the words, and of the pieces themselves
};

}  // namespace

void UnigramTrainer::add(std::string_view text) {
    for_units(text, [&](std::string_view unit) { units_.add(unit); });
}

UnigramPieces UnigramTrainer::train(const UnigramSettings& settings) const {
    Words units;
    for (uint32_t i = 0; i < units_.words.size(); ++i) units.emplace_back(units_.words.key(i), units_.counts[i]);
    std::vector<Seed> seeds = frequent_letters(units, settings.coverage);
    const size_t letters = seeds.size();
    const Words words = split_at_unknown(units, seeds);
    units = {};
    const size_t limit = std::min<size_t>(settings.seeds, Lattice::MOST_PIECES - letters);
    for (Seed& seed : frequent_strings(words, settings.most_letters, limit)) seeds.push_back(std::move(seed));
    Training training(words, std::move(seeds), letters);
    // the last few are chosen by probability; letters are never pruned
    const size_t enough = std::max(settings.pieces + settings.pieces / 10, letters);
    while (true) {
        for (int i = 0; i < settings.iterations; ++i) training.improve();
        if (training.size() <= enough) break;
        const auto smaller = static_cast<size_t>(settings.shrink * static_cast<double>(training.size()));
        training.prune(std::max(enough, smaller));
    }
    return training.best(settings.pieces);
}

}  // namespace chainrule
