"""Count models: right counts, probabilities that sum to 1, and the numbers of the source."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.autograd.types import Array
from chainrule.errors import ConfigError, DataError
from chainrule.models import Additive, GoodTuring, KneserNey, NGram, Terminals
from chainrule.models.ngram.grams import count, listed
from chainrule.models.ngram.smoothing import Smoothing, discounts, good_turing
from chainrule.text import CharTokenizer
from tests.models.words import LETTERS, encode, short_words
from tests.vectors import vector

SMOOTHERS = {"mle": Additive(0), "add 1": Additive(1), "good-turing": GoodTuring(), "kneser-ney": KneserNey()}
TERMINALS = {
    "one": Terminals(0, 0),
    "pair": Terminals(0, 5),
    "none": Terminals(6, None),
}  # of a vocabulary of 6


@pytest.fixture(scope="module")
def words() -> list[Array]:
    return short_words()


@pytest.fixture(scope="module")
def bigram(words: list[Array]) -> NGram:
    return NGram.fit(words, order=2, vocab_size=27)


class TestCounts:
    @pytest.mark.requirement("R-173")
    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    def test_emma_against_a_plain_counter(self, order: int) -> None:
        word = [2, 3, 3, 1]
        padded = [0] * (order - 1) + word + [0]
        want = Counter(tuple(padded[i : i + order]) for i in range(len(padded) - order + 1))
        contexts, tokens, counts = listed(count([word], order, 4, Terminals()))
        got = {
            (*c, t): n for c, t, n in zip(contexts.tolist(), tokens.tolist(), counts.tolist(), strict=True)
        }
        assert got == want

    @settings(max_examples=60)
    @given(st.lists(st.lists(st.integers(1, 4), max_size=12), min_size=1, max_size=6), st.integers(1, 5))
    def test_any_documents_against_a_plain_counter(self, documents: list[list[int]], order: int) -> None:
        for ends in (Terminals(0, 0), Terminals(0, 5), Terminals(6, None)):
            closing = [] if ends.end is None else [ends.end]
            rows = [[ends.start] * (order - 1) + d + closing for d in documents]
            want = Counter(tuple(r[i : i + order]) for r in rows for i in range(len(r) - order + 1))
            if not want:
                continue
            contexts, tokens, counts = listed(count(documents, order, 6, ends))
            assert {(*c, t): n for c, t, n in zip(contexts.tolist(), tokens, counts, strict=True)} == want

    @pytest.mark.requirement("R-172")
    def test_contexts_of_isabella(self) -> None:
        v = vector("002-isabella-contexts")
        word, end = v.inputs["word"], v.inputs["end"]
        rows, tokens, _ = listed(count(encode([word]), len(word) + 1, 27, Terminals()))
        names = ["", *LETTERS]
        pairs = {"".join(names[i] for i in row): names[t] or end for row, t in zip(rows, tokens, strict=True)}
        assert len(pairs) == len(word) + 1
        v.check([[context, pairs[context]] for context, _ in v.recomputed])

    @pytest.mark.requirement("R-174")
    def test_index_map(self) -> None:
        v = vector("002-index-map")
        tokenizer = CharTokenizer("".join(v.inputs["vocab"]))
        ids = tokenizer.encode("".join(v.inputs["seq"]))
        v.check(ids)
        assert tokenizer.decode(ids) == "".join(v.inputs["seq"])

    @pytest.mark.requirement("R-175")
    def test_emma_with_two_terminals_and_with_one(self) -> None:
        two = NGram.fit([[1, 2, 2, 3]], order=2, vocab_size=5, ends=Terminals(0, 4)).adjacency()
        vector("der-emma-counts").check(two)
        one = NGram.fit([[2, 3, 3, 1]], order=2, vocab_size=4).adjacency()
        vector("der-emma-counts-one-terminal").check(
            {"counts": one, "row_sums": one.sum(axis=1), "col_sums": one.sum(axis=0)}
        )

    @pytest.mark.requirement("R-176", "R-177")
    def test_what_the_matrix_of_emma_shows(self) -> None:
        v = vector("002-emma-selfloop-and-terminals")
        tokens = v.inputs["vocab"]
        word = [tokens.index(c) for c in v.inputs["word"]]
        matrix = NGram.fit([word], order=2, vocab_size=5, ends=Terminals(0, 4)).adjacency()
        v.check({"diagonal": np.diag(matrix), "row_E": matrix[4], "col_S": matrix[:, 0]})
        edges = vector("002-emma-edges").recomputed
        assert Counter(map(tuple, edges)) == {
            (tokens[i], tokens[j]): matrix[i, j] for i, j in np.argwhere(matrix)
        }
        path = [edges[0][0], *(b for _, b in edges)]
        vector("002-emma-vertices").check(list(dict.fromkeys(path)))
        vector("002-emma-rowsum-equals-colsum").check(
            {
                "row_sums_equal_col_sums": bool((matrix.sum(0) == matrix.sum(1)).all()),
                "row_sums": matrix.sum(axis=1),
                "col_sums": matrix.sum(axis=0),
            }
        )

    @pytest.mark.requirement("R-177")
    def test_with_one_terminal_every_token_is_left_as_often_as_entered(self, bigram: NGram) -> None:
        matrix = bigram.adjacency()
        assert (matrix.sum(axis=0) == matrix.sum(axis=1)).all()

    @pytest.mark.requirement("R-188")
    def test_a_full_table_explodes_and_is_mostly_empty(self, words: list[Array]) -> None:
        models = {n: NGram.fit(words, order=n, vocab_size=27) for n in (2, 3, 4)}
        vector("der-ngram-storage").check([m.table_size for m in models.values()])
        v = vector("004-6.2-ngram-features")
        sizes = [NGram.fit([[1]], order=n, vocab_size=v.inputs["V"]).table_size for n in (2, 3)]
        v.check(dict(zip(("bigram", "trigram"), sizes, strict=True)))
        shares = [m.stored / m.table_size for m in models.values()]
        assert shares[0] > shares[1] > shares[2] and shares[2] < 0.05

    def test_huge_vocabularies_at_high_order(self) -> None:
        """50,000 tokens to the fifth power do not fit an integer; the keys do."""
        ids = np.random.default_rng(0).integers(0, 50_000, 2000)
        model = NGram.fit([np.tile(ids, 2)], order=6, vocab_size=50_000, ends=Terminals(50_000, None))
        assert model.nll() < 0.01

    @pytest.mark.parametrize(
        ("documents", "message"),
        [
            ([[1, 2], [3, 9]], r"document 1 has token 9 \(must be from 0 to 3 and no terminal"),
            ([[1, 0]], "document 0 has token 0"),
            ([[1], [0.5]], r"document 1 is float64 \(1,\)"),
            ([], "0 documents without a token"),
        ],
    )
    def test_bad_documents_are_refused(self, documents: list[list[int]], message: str) -> None:
        with pytest.raises(DataError, match=message):
            NGram.fit(documents, order=2, vocab_size=4)

    def test_bad_settings_are_refused(self) -> None:
        with pytest.raises(ConfigError, match="order is 0"):
            NGram.fit([[1]], order=0, vocab_size=4)
        with pytest.raises(ConfigError, match="end token 7"):
            NGram.fit([[1]], order=2, vocab_size=4, ends=Terminals(0, 7))
        with pytest.raises(ConfigError, match="s is -1"):
            Additive(-1)
        with pytest.raises(ConfigError, match="0 samples"):
            NGram.fit([[1]], order=2, vocab_size=4).sample(0)
        with pytest.raises(ConfigError, match="order is 1"):
            NGram.fit([[1]], order=1, vocab_size=4).adjacency()
        with pytest.raises(DataError, match=r"contexts \(1, 2\)"):
            NGram.fit([[1]], order=2, vocab_size=4).probability([[1, 2]], [3])


class TestProbabilities:
    @pytest.mark.parametrize("name", SMOOTHERS)
    @pytest.mark.parametrize("ends", TERMINALS.values(), ids=TERMINALS)
    @pytest.mark.parametrize("order", [1, 2, 3, 4])
    def test_every_distribution_sums_to_one(self, name: str, ends: Terminals, order: int) -> None:
        """After every context, seen or not; a separate start token never follows."""
        rng = np.random.default_rng(1)
        documents = [
            rng.choice([1, 2, 3, 4], rng.integers(1, 9), p=[0.5, 0.3, 0.15, 0.05]) for _ in range(30)
        ]
        model = NGram.fit(documents, order=order, vocab_size=6, ends=ends, smoothing=SMOOTHERS[name])
        contexts = np.array(list(product(range(6), repeat=order - 1))).reshape(6 ** (order - 1), -1)
        p = model.probabilities(contexts)
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        if ends == TERMINALS["pair"]:
            assert (p[:, 0] == 0).all()

    @settings(max_examples=40)
    @given(
        st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=8), min_size=1, max_size=5),
        st.sampled_from(sorted(SMOOTHERS)),
    )
    def test_any_documents_give_distributions(self, documents: list[list[int]], name: str) -> None:
        model = NGram.fit(documents, order=3, vocab_size=4, smoothing=SMOOTHERS[name])
        p = model.probabilities(list(product(range(4), repeat=2)))
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert math.isfinite(model.nll())

    @pytest.mark.requirement("R-178", "R-185")
    def test_emma(self) -> None:
        v = vector("der-emma-mle-nll")
        word = [[2, 3, 3, 1]]
        plain = NGram.fit(word, order=2, vocab_size=4)
        smooth = plain.smoothed(Additive(1))
        tokens = np.arange(4)[:, None]
        v.check(
            {
                "P": plain.probabilities(tokens),
                "nll_sum": -plain.log_likelihood(word)[0],
                "nll_mean": plain.nll(word),
                "P_smoothed_1": smooth.probabilities(tokens),
                "nll_sum_smoothed_1": -smooth.log_likelihood(word)[0],
                "nll_mean_smoothed_1": smooth.nll(word),
            }
        )
        pairs = [(0, 2), (2, 3), (3, 3), (3, 1), (1, 0)]
        each = plain.probability([[a] for a, _ in pairs], [b for _, b in pairs])
        assert math.exp(plain.log_likelihood(word)[0]) == pytest.approx(each.prod())

    @pytest.mark.requirement("R-185")
    def test_the_product_underflows_and_the_sum_does_not(self, bigram: NGram, words: list[Array]) -> None:
        padded = np.concatenate([[0], *(np.append(w, 0) for w in words)])
        each = bigram.probability(padded[:-1, None], padded[1:])
        assert each.prod() == 0.0
        total, transitions = bigram.log_likelihood(words)
        assert math.isfinite(total) and total == pytest.approx(np.log(each).sum())
        assert transitions == len(each)

    @pytest.mark.requirement("R-180")
    def test_no_other_row_stochastic_matrix_is_likelier(self, bigram: NGram) -> None:
        counts = bigram.adjacency()
        best = bigram.probabilities(np.arange(27)[:, None])
        seen = counts > 0
        rng = np.random.default_rng(0)
        for scale in (1e-3, 0.1, 1.0):
            other = best * np.exp(scale * rng.normal(size=best.shape))
            other /= other.sum(axis=1, keepdims=True)
            assert (counts[seen] * np.log(other[seen])).sum() < (counts[seen] * np.log(best[seen])).sum()

    @pytest.mark.requirement("R-181", "R-182")
    def test_rows_are_normalized_not_columns(self, bigram: NGram, words: list[Array]) -> None:
        p, counts = bigram.probabilities(np.arange(27)[:, None]), bigram.adjacency()
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(p, counts / counts.sum(axis=1, keepdims=True), rtol=1e-12)
        wrong = counts / np.maximum(counts.sum(axis=0, keepdims=True), 1)
        assert np.abs(wrong.sum(axis=1) - 1).max() > 0.1 and np.abs(p - wrong).max() > 0.1
        assert p.size == bigram.table_size == 27**2
        again = NGram.fit(words, order=2, vocab_size=27).probabilities(np.arange(27)[:, None])
        assert (again == p).all()

    @pytest.mark.requirement("R-183")
    def test_it_has_learned_something(self, bigram: NGram) -> None:
        vector("002-uniform-probability").check(1 / bigram.vocab_size)
        rows = bigram.probabilities(np.arange(27)[:, None])
        assert (rows.max(axis=1) > 1 / 27).all()
        assert bigram.nll() < math.log(27)
        assert bigram.learned()
        alike = NGram.fit(list(np.eye(3, dtype=int) @ [[1], [2], [3]]), order=1, vocab_size=4)
        assert alike.learned()  # the terminal is likelier than the letters
        uniform = NGram.fit([[i] for i in range(4)], order=1, vocab_size=4, ends=Terminals(4, None))
        assert not uniform.learned()

    def test_nll_perplexity_and_documents_agree(self, bigram: NGram, words: list[Array]) -> None:
        assert bigram.nll() == bigram.nll(words)
        assert bigram.perplexity() == pytest.approx(math.exp(bigram.nll()))


class TestSmoothing:
    @pytest.mark.requirement("R-186")
    def test_smoothing_tends_to_uniform(self) -> None:
        v = vector("der-smoothing-limit")
        documents = [[1], [1], [1], [2]]  # row [0, 3, 1] after the terminal
        plain = NGram.fit(documents, order=2, vocab_size=3)
        v.check([plain.smoothed(Additive(s)).probabilities([[0]])[0] for s in v.inputs["s"]])

    @pytest.mark.requirement("R-186")
    def test_an_unseen_pair_is_impossible_without_smoothing(self, words: list[Array]) -> None:
        known = [w for w in words if (10, 17) not in pairwise(w)]  # no "jq"
        model = NGram.fit(known, order=2, vocab_size=27)
        jq = encode(["jq"])
        assert model.nll(jq) == math.inf
        assert math.isfinite(model.smoothed(Additive(1)).nll(jq))

    @pytest.mark.requirement("R-187")
    def test_more_smoothing_fits_the_training_data_worse(self, bigram: NGram) -> None:
        losses = [bigram.smoothed(Additive(s)).nll() for s in (0, 1, 10, 100)]
        assert losses == sorted(losses) and losses[-1] > losses[0] + 0.01

    def test_on_new_words_kneser_ney_beats_adding(self, words: list[Array]) -> None:
        train, new = words[:3600], words[3600:]
        model = NGram.fit(train, order=4, vocab_size=27)
        losses = {name: model.smoothed(s).nll(new) for name, s in SMOOTHERS.items()}
        assert losses["kneser-ney"] < losses["good-turing"] < losses["add 1"] < losses["mle"] == math.inf

    def test_kneser_ney_against_its_definition(self) -> None:
        rng = np.random.default_rng(3)
        documents = [rng.integers(1, 4, rng.integers(1, 8)).tolist() for _ in range(25)]
        model = NGram.fit(documents, order=3, vocab_size=4, smoothing=KneserNey())
        for *context, token in product(range(4), repeat=3):
            want = kneser_ney_by_hand(documents, tuple(context), token, order=3, vocab=4)
            assert model.probability([context], [token])[0] == pytest.approx(want, abs=1e-12)

    def test_discounts_are_those_of_chen_and_goodman(self) -> None:
        counts = np.repeat([1, 2, 3, 4, 9], [60, 20, 10, 6, 3])
        y = 60 / (60 + 40)
        want = [0, 1 - 2 * y * 20 / 60, 2 - 3 * y * 10 / 20, 3 - 4 * y * 6 / 10]
        np.testing.assert_allclose(discounts(counts), want)

    def test_good_turing_estimates(self) -> None:
        """N(r) = A / (r (r + 1)), so r* = r (r + 1) / (r + 2): certain for small r, where N(r) is large."""
        r = np.arange(1, 60)
        frequencies = np.round(1_000_000 / (r * (r + 1))).astype(int)
        counts = np.repeat(r, frequencies)
        adjusted = dict(zip(counts.tolist(), good_turing(counts).tolist(), strict=True))
        for seen in (1, 2, 3):
            assert adjusted[seen] == pytest.approx(seen * (seen + 1) / (seen + 2), rel=1e-3)
        assert all(0 < value < seen for seen, value in adjusted.items())

    def test_good_turing_against_its_definition(self) -> None:
        """Tables of all sizes, so that the line takes over at different counts."""
        rng = np.random.default_rng(4)
        places = set()
        for _ in range(200):
            seen = np.unique(rng.integers(1, 25, size=12))
            sizes = {int(r): int(rng.poisson(10 ** rng.uniform(1, 5) / r**2)) + 1 for r in seen}
            want, place = good_turing_by_hand(sizes)
            got = good_turing(np.array(list(sizes)).repeat(list(sizes.values())))
            np.testing.assert_allclose(got, np.repeat(want, list(sizes.values())), rtol=1e-9)
            places.add(place)
        assert len(places) > 2


class TestSampling:
    @pytest.mark.requirement("R-179")
    def test_samples_end_and_are_as_long_as_names(self, words: list[Array], bigram: NGram) -> None:
        samples = bigram.smoothed(Additive(0.1)).sample(10_000, seed=1, limit=500)
        lengths = [len(s) for s in samples]
        assert max(lengths) < 500
        assert np.mean(lengths) == pytest.approx(np.mean([len(w) for w in words]), rel=0.05)

    @pytest.mark.requirement("R-179")
    def test_the_end_can_be_reached_from_everywhere(self, bigram: NGram) -> None:
        p = bigram.smoothed(Additive(0.1)).probabilities(np.arange(27)[:, None])
        assert (p[:, 0] > 0).all()

    @pytest.mark.requirement("R-184")
    def test_same_seed_same_names_with_the_frequencies_of_the_first_row(self, bigram: NGram) -> None:
        samples = bigram.sample(10_000, seed=7)
        assert [s.tolist() for s in bigram.sample(50, seed=7)] == [s.tolist() for s in samples[:50]]
        assert [s.tolist() for s in bigram.sample(50, seed=8)] != [s.tolist() for s in samples[:50]]
        first = np.bincount([s[0] if len(s) else 0 for s in samples], minlength=27) / len(samples)
        p = bigram.probabilities([[0]])[0]  # of what follows the start token
        assert (np.abs(first - p) <= 3 * np.sqrt(p * (1 - p) / len(samples)) + 1e-12).all()

    @pytest.mark.requirement("R-184")
    def test_a_sample_is_drawn_row_by_row_until_the_terminal(self, bigram: NGram) -> None:
        """Frequencies of every transition are those of its row, that to the terminal included."""
        samples = bigram.sample(10_000, seed=7)
        assert all(0 not in s for s in samples)  # the terminal ends a sample, and is not part of it
        counts = np.zeros((27, 27))
        for s in samples:
            np.add.at(counts, ([0, *s], [*s, 0]), 1)
        p, n = bigram.probabilities(np.arange(27)[:, None]), counts.sum(axis=1, keepdims=True)
        drawn = n[:, 0] > 100
        errors = (counts - n * p)[drawn] / np.sqrt(n * p * (1 - p) + 1e-12)[drawn]
        assert drawn.sum() > 20 and not counts[p == 0].any()
        assert np.abs(errors[p[drawn] > 0]).max() < 5 and np.sqrt(np.mean(errors[p[drawn] > 0] ** 2)) < 1.1

    def test_without_an_end_samples_have_the_length_asked_for(self) -> None:
        model = NGram.fit([[0, 1, 2, 0, 1, 2, 0]], order=3, vocab_size=3, ends=Terminals(3, None))
        assert model.sample(2, limit=9)[0].tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2]


def good_turing_by_hand(sizes: dict[int, int]) -> tuple[list[float], int]:
    """r* for N(r), and at which of the counts the line through log N(r) takes over from (r + 1) N(r + 1) / N(r)."""
    r = sorted(sizes)
    around = [0, *r, 2 * r[-1] - r[-2]]
    x = [math.log(c) for c in r]
    y = [math.log(2 * sizes[c] / (around[i + 2] - around[i])) for i, c in enumerate(r)]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    slope /= sum((a - mean_x) ** 2 for a in x)
    found = [c * ((c + 1) / c) ** (slope + 1) for c in r]
    for place, c in enumerate(r):
        here, above = sizes[c], sizes.get(c + 1, 0)
        turing = (c + 1) * above / here
        variance = (c + 1) ** 2 * above / here**2 * (1 + above / here)
        if above == 0 or abs(turing - found[place]) <= 1.65 * variance**0.5:
            break
        found[place] = turing
    return [min(max(value, 0.01), c - 0.01) for value, c in zip(found, r, strict=True)], place


def kneser_ney_by_hand(
    documents: list[list[int]], context: tuple[int, ...], token: int, *, order: int, vocab: int
) -> float:
    """The definition, gram by gram: plain counts at the top and after document starts, else continuations."""
    rows = [[0] * (order - 1) + d + [0] for d in documents]
    plain = {
        k: Counter(tuple(r[i - k : i + 1]) for r in rows for i in range(order - 1, len(r)))
        for k in range(order)
    }

    def counts_at(k: int) -> dict[tuple[int, ...], int]:
        if k == order - 1:
            return plain[k]
        after = Counter(gram[1:] for gram in plain[k + 1])
        return {g: n if k and g[0] == 0 else after[g] for g, n in plain[k].items()}

    def p(k: int, c: tuple[int, ...]) -> float:
        lower = p(k - 1, c[1:]) if k else 1 / vocab
        counts = counts_at(k)
        d = discounts(np.array(list(counts.values())))
        here = {g[-1]: n for g, n in counts.items() if g[:-1] == c}
        if not here:
            return lower
        total = sum(here.values())
        left = sum(d[min(n, 3)] for n in here.values()) / total
        own = here.get(token, 0)
        return (own - d[min(own, 3)]) / total + left * lower

    return p(order - 1, context)


@pytest.mark.parametrize("smoothing", SMOOTHERS.values(), ids=SMOOTHERS)
def test_order_one_is_the_frequency_of_tokens(smoothing: Smoothing) -> None:
    model = NGram.fit([[1] * 60, [2] * 30], order=1, vocab_size=4, smoothing=smoothing)
    p = model.probabilities(np.empty((1, 0), int))[0]
    assert p[1] > p[2] > p[0] > p[3]
