"""The backward formulas of the transformer, one by one and then as whole models (area S: R-344 .. R-362).

The vectors check each formula. The models at the end are built from ops alone: an encoder-decoder against
central differences, and a language model whose backward pass is written out by hand against the tape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.ops import (
    attention,
    batchnorm,
    causal_mask,
    cross_entropy,
    embedding,
    gelu,
    layernorm,
    linear,
    mse,
    prelu,
    relu,
    sigmoid,
    softmax,
)
from tests.vectors import vector

ALL = (True, True, True)  # needs: every gradient


def tape(fn: Callable[..., Any], *arrays: Any, dy: Any = None) -> tuple[np.ndarray, list[Any]]:
    """The value of fn and the gradients of its arguments."""
    tensors = [cr.Tensor(np.array(a, dtype=float), requires_grad=True) for a in arrays]
    y = fn(*tensors)
    y.backward(dy)
    return y.numpy(), [t.grad for t in tensors]


# -- single layers -------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-344")
def test_logits() -> None:
    v = vector("der-ce-batch-mean")
    loss, (grad,) = tape(lambda z: cross_entropy(z, targets=v.inputs["labels"]), v.inputs["logits"])
    v.check({"loss": loss, "grad": grad})


@pytest.mark.requirement("R-345")
def test_linear() -> None:
    v = vector("der-linear-backward")
    X, W, b, G = (np.array(v.inputs[name]) for name in ("X", "W", "b", "grad"))
    Y, (dX, dW, db) = tape(lambda *args: linear(*args, layout="in_out"), X, W, b, dy=G)
    v.check({"Y": Y, "dW": dW, "db": db, "dX": dX})
    for x, g in zip(X, G, strict=True):  # the column convention y = W x, one example at a time
        _, (dx, dW, _) = tape(linear, x, W.T, b, dy=g)
        np.testing.assert_allclose(dW, np.outer(g, x), rtol=1e-15)
        np.testing.assert_allclose(dx, W @ g, rtol=1e-15)


@pytest.mark.requirement("R-346")
def test_linear_jacobians() -> None:
    """dy/dW (m, m, n) has x in block i of row i and zeros elsewhere; dy/db = 1, dy/dx = W (E-000-02)."""
    m, n = 3, 2
    x, W, b, g = np.array([2.0, 5.0]), np.arange(6.0).reshape(m, n), np.ones(m), np.array([1.0, -1.0, 4.0])
    rows = [tape(linear, x, W, b, dy=seed)[1] for seed in np.eye(m)]
    dx, dW, db = (np.array(part) for part in zip(*rows, strict=True))
    np.testing.assert_array_equal(dW, np.einsum("ij,k->ijk", np.eye(m), x))
    np.testing.assert_array_equal(dW.reshape(m, m * n), np.kron(np.eye(m), x))  # the same as an m×mn matrix
    np.testing.assert_array_equal(np.einsum("i,ijk->jk", g, dW), np.outer(g, x))
    np.testing.assert_array_equal(db, np.eye(m))
    np.testing.assert_array_equal(dx, W)


@pytest.mark.requirement("R-213", "R-347")
def test_layer_recursion() -> None:
    """δ(l) = (Wᵀ δ(l+1)) ⊙ f'(z), on the 2-3-1 network with ReLU and sigmoid."""
    v = vector("004-5.4.4-delta2")
    x, W1, b1, W2, b2 = (np.array(v.inputs[name]) for name in ("x", "W1", "b1", "W2", "b2"))
    W1, b1, W2, b2 = (cr.Tensor(a, requires_grad=True) for a in (W1, b1, W2, b2))
    z1 = linear(x, W1, b1)
    h1 = relu(z1)
    z2 = linear(h1, W2, b2)
    for tensor in (z1, h1, z2):
        tensor.retain_grad()
    mse(sigmoid(z2), np.array([v.inputs["target"]], dtype=float), half=True).backward()
    assert z2.grad is not None and b2.grad is not None and W2.grad is not None
    v.check(z2.grad.item())
    vector("004-5.4.4-dW2").check({"dW2": W2.grad[0], "db2": b2.grad.item()})
    vector("004-5.4.4-dh1").check(h1.grad)
    vector("004-5.4.4-delta1").check({"mask": (z1.numpy() > 0).astype(int), "delta1": z1.grad})
    vector("004-5.4.4-dW1").check({"dW1": W1.grad, "db1": b1.grad})


@pytest.mark.requirement("R-348")
def test_layernorm() -> None:
    v = vector("der-layernorm-backward")
    args = (v.inputs[name] for name in ("x", "gamma", "beta"))
    _, (dx, dgamma, dbeta) = tape(lambda *a: layernorm(*a, eps=v.inputs["eps"]), *args, dy=v.inputs["grad"])
    v.check({"dx": dx, "dgamma": dgamma, "dbeta": dbeta})


@pytest.mark.requirement("R-349", "R-350")
@pytest.mark.parametrize("id, op", [("der-relu", relu), ("der-gelu", gelu)])
def test_activations(id: str, op: Callable[..., Any]) -> None:
    v = vector(id)
    y, (dy,) = tape(op, v.inputs["x"], dy=np.ones(7))
    v.check({"y": y, "dy": dy})


@pytest.mark.requirement("R-361")
def test_prelu() -> None:
    v = vector("der-prelu")
    x, alpha = np.array(v.inputs["x"]), v.inputs["alpha"]
    y, (dx, dalpha) = tape(prelu, x, np.full(7, alpha), dy=np.ones(7))
    v.check({"y": y, "dx": dx, "dalpha": dalpha})
    assert tape(prelu, x, alpha, dy=np.ones(7))[1][1] == dalpha.sum()  # one alpha for all: the sum


@pytest.mark.requirement("R-351")
def test_softmax() -> None:
    v = vector("der-softmax-vjp")
    logits, grad = np.array(v.inputs["logits"]), np.array(v.inputs["grad"])
    v.check(tape(softmax, logits, dy=grad)[1][0])
    rows = np.stack([logits, -logits])
    _, (both,) = tape(softmax, rows, dy=np.stack([grad, grad]))  # row by row
    np.testing.assert_allclose(both, [tape(softmax, row, dy=grad)[1][0] for row in rows], rtol=1e-15)


@pytest.mark.requirement("R-357")
def test_embedding() -> None:
    v = vector("der-embedding-scatter")
    table = np.zeros((v.inputs["V"], 2))
    _, (dW,) = tape(lambda W: embedding(W, ids=v.inputs["tokens"]), table, dy=v.inputs["grad"])
    v.check(dW)


@pytest.mark.requirement("R-359")
def test_batchnorm() -> None:
    v = vector("der-batchnorm")
    X, W, b, gamma, beta = (np.array(v.inputs[name]) for name in ("X", "W", "b", "gamma", "beta"))
    b, gamma, beta = (cr.Tensor(a, requires_grad=True) for a in (b, gamma, beta))
    hidden = linear(X, W, b, layout="in_out")
    hidden.retain_grad()
    Y, mean, var = batchnorm(hidden, gamma, beta, eps=v.inputs["eps"])
    Y.backward(v.inputs["grad"])
    statistics = {"Y": Y, "mean": mean, "var_biased": var}
    v.check(statistics | {"dH": hidden.grad, "dgamma": gamma.grad, "dbeta": beta.grad, "db": b.grad})


@pytest.mark.requirement("R-356")
def test_residual() -> None:
    """R = X + f(X): the gradient is copied to both branches and added, to the last bit."""
    x, W, b, dR = normal(5, 4), normal(4, 4, seed=1), normal(4, seed=2), normal(5, 4, seed=3)
    _, (dX,) = tape(lambda x: x + linear(x, W, b), x, dy=dR)
    through_f, _, _ = linear.backward(dR, linear.forward(x, W, b)[1], (True, False, False))
    np.testing.assert_array_equal(dX, dR + through_f)


# -- attention -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-352", "R-353")
def test_attention_and_its_projections() -> None:
    v = vector("der-attention-backward")
    X, W_q, W_k, W_v, dO = (np.array(v.inputs[name]) for name in ("X", "WQ", "WK", "WV", "grad"))
    q, k, values = X @ W_q, X @ W_k, X @ W_v
    _, saved = attention.forward(q, k, values)
    dq, dk, dv = attention.backward(dO, saved, ALL)
    assert dq is not None and dk is not None and dv is not None

    def project_and_attend(x: Any, *weights: Any) -> Any:
        return attention(*(linear(x, W, layout="in_out") for W in weights))

    _, (dX, dW_q, dW_k, dW_v) = tape(project_and_attend, X, W_q, W_k, W_v, dy=dO)
    contributions = (dq @ W_q.T, dk @ W_k.T, dv @ W_v.T)
    np.testing.assert_allclose(dX, sum(contributions), rtol=1e-14, atol=1e-14)
    scores = score_gradients(q, k, values, dO)
    v.check({"dQ": dq, "dK": dk, "dV": dv, "dWQ": dW_q, "dWK": dW_k, "dWV": dW_v, "dX": dX} | scores)


def score_gradients(q: np.ndarray, k: np.ndarray, v: np.ndarray, dO: np.ndarray) -> dict[str, Any]:
    """dA and dS of the same attention written with small ops; in the seed "scaled" is after the softmax."""
    raw = cr.Tensor(q @ k.T, requires_grad=True)
    scaled = raw * (1 / np.sqrt(q.shape[-1]))
    A = softmax(scaled)
    scaled.retain_grad()
    A.retain_grad()
    (A @ v).backward(dO)
    return {"dA": A.grad, "dS_scaled": scaled.grad, "dS_unscaled": raw.grad}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


# -- blocks from ops, with parameters in a dict --------------------------------------------------------------

C, H, F, V = 8, 2, 12, 7  # channels, heads, inner size, vocabulary


def parameters(*blocks: tuple[str, str], **tables: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Random arrays for blocks (name, kinds), a kind being a: attention, f: feed-forward, n: norm."""
    kinds: dict[str, dict[str, tuple[int, ...]]] = {
        "a": {"q": (C, C), "k": (C, C), "v": (C, C), "o": (C, C)},
        "f": {"W1": (F, C), "b1": (F,), "W2": (C, F), "b2": (C,)},
        "n": {"gamma": (C,), "beta": (C,)},
    }
    shapes = dict(tables)
    for name, parts in blocks:
        for i, kind in enumerate(parts):
            shapes |= {f"{name}.{i}.{part}": shape for part, shape in kinds[kind].items()}
    rng = np.random.default_rng(0)
    return {name: 0.5 * rng.normal(size=shape) for name, shape in shapes.items()}


def heads(x: Any) -> Any:
    B, T, _ = x.shape
    return x.reshape(B, T, H, C // H).transpose(0, 2, 1, 3)  # (B, H, T, D)


def merge(x: Any) -> Any:
    B, _, T, _ = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, C)


def attend(p: dict[str, Any], name: str, x: Any, memory: Any, **masks: Any) -> Any:
    q, k, v = linear(x, p[f"{name}.q"]), linear(memory, p[f"{name}.k"]), linear(memory, p[f"{name}.v"])
    return linear(merge(attention(heads(q), heads(k), heads(v), **masks)), p[f"{name}.o"])


def feed_forward(p: dict[str, Any], name: str, x: Any) -> Any:
    inner = gelu(linear(x, p[f"{name}.W1"], p[f"{name}.b1"]))
    return linear(inner, p[f"{name}.W2"], p[f"{name}.b2"])


def norm(p: dict[str, Any], name: str, x: Any) -> Any:
    return layernorm(x, p[f"{name}.gamma"], p[f"{name}.beta"])


def encoder_block(p: dict[str, Any], name: str, x: Any, mask: Any) -> Any:
    """Kinds "anfn", normalized after each residual as in seed 004 §12.3."""
    x = norm(p, f"{name}.1", x + attend(p, f"{name}.0", x, x, mask=mask))
    return norm(p, f"{name}.3", x + feed_forward(p, f"{name}.2", x))


def decoder_block(p: dict[str, Any], name: str, x: Any, memory: Any, mask: Any) -> Any:
    """Kinds "ananfn"."""
    x = norm(p, f"{name}.1", x + attend(p, f"{name}.0", x, x, causal=True))
    x = norm(p, f"{name}.3", x + attend(p, f"{name}.2", x, memory, mask=mask))
    return norm(p, f"{name}.5", x + feed_forward(p, f"{name}.4", x))


PADDING = np.array([[True, True, True, False], [True, True, False, False]])[:, None, None, :]  # (B, 1, 1, S)


@pytest.mark.requirement("R-354")
def test_masks_stop_gradients() -> None:
    p = parameters(("block", "a"))
    x, memory = normal(2, 3, C), normal(2, 4, C, seed=1)

    def run(x: Any, memory: Any, *weights: Any) -> Any:
        return attend(dict(zip(p, weights, strict=True)), "block.0", x, memory, mask=PADDING, causal=True)

    assert cr.gradcheck(run, x, memory, *p.values()) < 1e-6
    _, (_, dmemory, *_) = tape(run, x, memory, *p.values(), dy=normal(2, 3, C, seed=2))
    unseen = ~PADDING[:, 0, 0]  # never attended as keys or values
    np.testing.assert_array_equal(dmemory[unseen], 0)
    assert (dmemory[~unseen] != 0).all()

    q, k, v = (normal(2, H, 4, 3, seed=s) for s in range(3))
    mask = causal_mask(4) & (np.arange(4) != 2)  # position 2 is masked for all
    _, (_, dk, dv) = tape(lambda *args: attention(*args, mask=mask), q, k, v, dy=normal(2, H, 4, 3, seed=3))
    np.testing.assert_array_equal(dk[:, :, 2], 0)
    np.testing.assert_array_equal(dv[:, :, 2], 0)

    dy = normal(2, H, 4, 3, seed=3)
    dy[:, :, 2:] = 0  # only the first two queries matter
    _, (_, dk, dv) = tape(lambda *args: attention(*args, causal=True), q, k, v, dy=dy)
    np.testing.assert_array_equal(dk[:, :, 2:], 0)  # which the later keys and values cannot reach
    np.testing.assert_array_equal(dv[:, :, 2:], 0)


@pytest.mark.requirement("R-355")
def test_cross_attention_feeds_the_encoder_from_every_block() -> None:
    p = parameters(("0", "ananfn"), ("1", "ananfn"))
    state, memory, dy = normal(2, 3, C), normal(2, 4, C, seed=1), normal(2, 3, C, seed=2)

    def run(state: Any, *memories: Any) -> Any:
        for name, memory in zip("01", memories, strict=True):
            state = decoder_block(p, name, state, memory, PADDING)
        return state

    assert cr.gradcheck(lambda state, memory: run(state, memory, memory), state, memory) < 1e-6
    _, (_, shared) = tape(lambda state, memory: run(state, memory, memory), state, memory, dy=dy)
    _, (_, first, second) = tape(run, state, memory, memory, dy=dy)
    np.testing.assert_allclose(shared, first + second, rtol=1e-13)
    assert abs(first).max() > 1e-3 and abs(second).max() > 1e-3


@pytest.mark.requirement("R-358")
def test_whole_encoder_decoder() -> None:
    """Loss -> output -> decoder -> encoder -> embeddings: every parameter against central differences."""
    rng = np.random.default_rng(5)
    source, inputs, targets = (rng.integers(V, size=(2, T)) for T in (4, 3, 3))
    tables = {"source": (V, C), "target": (V, C), "positions": (4, C), "out": (V, C), "out_bias": (V,)}
    p = parameters(("encoder", "anfn"), ("decoder", "ananfn"), **tables)

    def loss(*weights: Any) -> Any:
        w = dict(zip(p, weights, strict=True))
        memory = embedding(w["source"], ids=source) + w["positions"]
        memory = encoder_block(w, "encoder", memory, PADDING)
        state = embedding(w["target"], ids=inputs) + w["positions"][:3]
        state = decoder_block(w, "decoder", state, memory, PADDING)
        return cross_entropy(linear(state, w["out"], w["out_bias"]), targets=targets)

    assert cr.gradcheck(loss, *p.values()) < 1e-6
    _, grads = tape(loss, *p.values())
    assert all(grad.any() for grad in grads)


# -- the backward pass written out ---------------------------------------------------------------------------


def language_model(p: dict[str, Any], ids: Any, targets: Any) -> Any:
    """One pre-norm block between an embedding and a softmax; kinds "nanfn"."""
    x = embedding(p["table"], ids=ids)
    a = norm(p, "block.0", x)
    x = x + attend(p, "block.1", a, a, causal=True)
    x = x + feed_forward(p, "block.3", norm(p, "block.2", x))
    return cross_entropy(linear(norm(p, "block.4", x), p["out"]), targets=targets)


def by_hand(p: dict[str, np.ndarray], ids: Any, targets: Any) -> tuple[np.ndarray, dict[str, Any]]:
    """The same forward, then every gradient by calling the backward functions in reverse order."""
    x, at_x = embedding.forward(p["table"], ids=ids)
    a, at_a = layernorm.forward(x, p["block.0.gamma"], p["block.0.beta"])
    (q, at_q), (k, at_k), (v, at_v) = (linear.forward(a, p[f"block.1.{m}"], None) for m in "qkv")
    o, at_o = attention.forward(heads(q), heads(k), heads(v), causal=True)
    c, at_c = linear.forward(merge(o), p["block.1.o"], None)
    r = x + c
    b, at_b = layernorm.forward(r, p["block.2.gamma"], p["block.2.beta"])
    u, at_u = linear.forward(b, p["block.3.W1"], p["block.3.b1"])
    g, at_g = gelu.forward(u)
    f, at_f = linear.forward(g, p["block.3.W2"], p["block.3.b2"])
    y = r + f
    n, at_n = layernorm.forward(y, p["block.4.gamma"], p["block.4.beta"])
    logits, at_logits = linear.forward(n, p["out"], None)
    loss, at_loss = cross_entropy.forward(logits, targets=targets)

    d: dict[str, Any] = {}
    (dlogits,) = cross_entropy.backward(np.array(1.0), at_loss, (True,))
    dn, d["out"], _ = linear.backward(dlogits, at_logits, (True, True, False))
    dy, d["block.4.gamma"], d["block.4.beta"] = layernorm.backward(dn, at_n, ALL)
    dg, d["block.3.W2"], d["block.3.b2"] = linear.backward(dy, at_f, ALL)
    (du,) = gelu.backward(dg, at_g, (True,))
    db, d["block.3.W1"], d["block.3.b1"] = linear.backward(du, at_u, ALL)
    dr, d["block.2.gamma"], d["block.2.beta"] = layernorm.backward(db, at_b, ALL)
    dr = dr + dy  # residual: y = r + f
    dmerged, d["block.1.o"], _ = linear.backward(dr, at_c, (True, True, False))
    dq, dk, dv = attention.backward(heads(dmerged), at_o, ALL)
    da, d["block.1.q"], _ = linear.backward(merge(dq), at_q, (True, True, False))
    da_k, d["block.1.k"], _ = linear.backward(merge(dk), at_k, (True, True, False))
    da_v, d["block.1.v"], _ = linear.backward(merge(dv), at_v, (True, True, False))
    da = da + da_k + da_v  # a feeds q, k and v
    dx, d["block.0.gamma"], d["block.0.beta"] = layernorm.backward(da, at_a, ALL)
    dx = dx + dr  # residual: r = x + c
    (d["table"],) = embedding.backward(dx, at_x, (True,))
    return loss, d


@pytest.mark.requirement("R-362")
def test_hand_written_backward_agrees_with_the_tape() -> None:
    rng = np.random.default_rng(6)
    ids, targets = rng.integers(V, size=(2, 5)), rng.integers(V, size=(2, 5))
    p = parameters(("block", "nanfn"), table=(V, C), out=(V, C))

    def run(*weights: Any) -> Any:
        return language_model(dict(zip(p, weights, strict=True)), ids, targets)

    loss, grads = tape(run, *p.values())
    loss_by_hand, by_name = by_hand(p, ids, targets)
    assert abs(loss - loss_by_hand) < 1e-12
    assert by_name.keys() == p.keys()
    for name, grad in zip(p, grads, strict=True):
        assert grad.any()
        assert abs(grad - by_name[name]).max() < 1e-9, name
