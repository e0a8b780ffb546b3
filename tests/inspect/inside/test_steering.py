"""Vectors to steer with."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.errors import DataError
from chainrule.inspect import Steer, effect, head_means, steering_vector, view
from tests.inspect.inside.planted import IDS, planted
from tests.inspect.inside.small import small


def test_it_is_the_difference_of_means() -> None:
    model, ids = small("llama")
    texts, others = [ids, ids[:3]], [[2, 4]]
    found = steering_vector(model, texts, others, "layers.0")
    streams = [view(model, text).stream("layers.0") for text in (*texts, *others)]
    assert np.allclose(found, (streams[0][-1] + streams[1][-1]) / 2 - streams[2][-1])
    means = steering_vector(model, texts, others, "layers.0", position=None)
    assert np.allclose(means, (streams[0].mean(0) + streams[1].mean(0)) / 2 - streams[2].mean(0))


def test_the_model_says_what_it_is_steered_to() -> None:
    """In the planted circuit the stream after the last block holds what comes next."""
    model = planted()
    vector = steering_vector(model, [IDS[:12]], [IDS[:9]], "h.1")  # there 9 comes next, here 3
    assert IDS[12] == 9 and IDS[9] == 3
    found = effect(model, IDS[:9], Steer("h.1", vector))
    assert found.before.top(1)[-1][0][0] == 3 and found.after.top(1)[-1][0][0] == 9


def test_means_of_heads() -> None:
    model, ids = small("t5")
    cross = head_means(model, [ids], -1, cross=True)
    seen = view(model, ids)
    mixed = seen.value(seen.sites.attending(-1, True).call)[0]  # (H, T, D)
    assert np.allclose(cross, mixed.mean(1))
    gpt, ids = small("gpt")
    packed = view(gpt, ids).value("h.0.attn.packed_attention")[0]  # (T, H D)
    assert np.allclose(head_means(gpt, [ids], "h.0"), packed.mean(0).reshape(2, 8))


def test_groups_without_texts_are_refused() -> None:
    model, ids = small("gpt")
    with pytest.raises(DataError, match="a group has no texts"):
        steering_vector(model, [ids], [], 0)
    with pytest.raises(DataError, match="got no texts"):
        head_means(model, [], 0)
