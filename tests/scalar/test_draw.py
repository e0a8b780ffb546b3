"""The picture of a graph: complete, readable, and drawn without another program."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chainrule.errors import ConfigError
from chainrule.scalar import MLP, Value, dot, graphs, multiply, svg

SVG = "{http://www.w3.org/2000/svg}"
Box = tuple[float, float, float, float]  # left, top, right, bottom


def drawing(root: Value) -> ET.Element:
    return ET.fromstring(svg(root))


def box(rect: ET.Element) -> Box:
    x, y, w, h = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
    return x, y, x + w, y + h


def boxes(picture: ET.Element) -> list[Box]:
    return [box(rect) for group in picture.findall(f"{SVG}g") for rect in group.findall(f"{SVG}rect")]


def curves(picture: ET.Element) -> Iterator[list[tuple[float, float]]]:
    """Points along every edge."""
    group = next(g for g in picture.findall(f"{SVG}g") if g.get("fill") == "none")
    for path in group.findall(f"{SVG}path"):
        points: list[tuple[float, float]] = []
        for command, numbers in re.findall(r"([MCH])([^MCH]*)", path.attrib["d"]):
            n = [float(v) for v in numbers.split()]
            if command == "M":
                points.append((n[0], n[1]))
            elif command == "H":
                x, y = points[-1]
                points += [(x + (n[0] - x) * t / 8, y) for t in range(1, 9)]
            else:
                (x0, y0), (x1, y1, x2, y2, x3, y3) = points[-1], n
                for t in (i / 16 for i in range(1, 17)):
                    a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
                    points.append((a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3))
        yield points


def assert_readable(root: Value) -> None:
    picture = drawing(root)
    everything = boxes(picture)
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for left, top, right, bottom in everything:
        assert left >= 0 and top >= 0 and right <= width and bottom <= height
    for a, b in itertools.combinations(everything, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], "two boxes overlap"
    for group in picture.findall(f"{SVG}g"):
        rects = [box(rect) for rect in group.findall(f"{SVG}rect")]
        for text in group.findall(f"{SVG}text"):
            x, y, length = (float(text.attrib[key]) for key in ("x", "y", "textLength"))
            start = {"start": x, "middle": x - length / 2, "end": x - length}[text.attrib["text-anchor"]]
            assert any(
                r[0] + 4 <= start and start + length <= r[2] - 4 and r[1] + 10 < y < r[3] for r in rects
            ), f"{text.text!r} leaves its box"
    for points in curves(picture):
        for x, y in points:
            inside = [r for r in everything if r[0] + 1 < x < r[2] - 1 and r[1] < y < r[3]]
            assert not inside, "an edge runs through a box"


def all_graphs() -> dict[str, Value]:
    network = MLP.random([2, 3, 2, 1], "relu", "sigmoid", seed=0)([1.0, -0.5])[0]
    return {
        "quadratic": graphs.quadratic(1.0)["f"],
        "product_plus": graphs.product_plus()["F"],
        "figure_1": graphs.figure_1()["L"],
        "fan_out": graphs.fan_out()["z"],
        "diamond": graphs.diamond()["z"],
        "two_layers": graphs.two_layers()["L"],
        "neuron": graphs.neuron()["y"],
        "network": (network - 1) ** 2,
        "leaf": Value(3.0),
    }


@pytest.mark.requirement("R-002")
@pytest.mark.parametrize("name", all_graphs())
def test_svg_is_readable(name: str) -> None:
    root = all_graphs()[name]
    root.backward()
    assert_readable(root)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.booleans()), min_size=1, max_size=14))
def test_any_graph_is_readable(steps: list[tuple[int, int, bool]]) -> None:
    nodes = [Value(0.5), Value(-1.25)]
    for a, b, is_sum in steps:
        left, right = nodes[a % len(nodes)], nodes[b % len(nodes)]
        nodes.append(left + right if is_sum else multiply(left.tanh(), right))
    nodes[-1].backward()
    assert_readable(nodes[-1])


@pytest.mark.requirement("R-002")
def test_every_value_gradient_and_operation_is_in_the_picture() -> None:
    nodes = graphs.figure_1()
    nodes["L"].backward()
    picture = drawing(nodes["L"])
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    for name, node in nodes.items():
        assert name in texts
        assert f"{node.data:g}" in texts and f"{node.grad:g}" in texts
    assert (texts.count("*"), texts.count("+")) == (2, 1)
    assert len(list(curves(picture))) == sum(len(node.children) for node in nodes.values())


def test_leaves_stand_left_of_what_they_make() -> None:
    nodes = graphs.figure_1()
    picture = drawing(nodes["L"])
    left = {}
    for group in picture.findall(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        if title is not None:
            name = re.search(r"\((\w+) =", title.text or "")
            left[name.group(1)] = box(group.findall(f"{SVG}rect")[0])[0]
    for node in nodes.values():
        assert all(left[child.label] < left[node.label] for child in node.children)


def test_names_are_escaped_and_wide_ones_fit() -> None:
    root = Value(1.0, label='<w & "1">') * Value(2.0, label="重み") + Value(-0.0, label="a|{b}")
    root.label = "a rather long name, longer than its numbers"
    assert_readable(root)
    assert {'<w & "1">', "重み", "a|{b}"} <= {text.text for text in drawing(root).iter(f"{SVG}text")}
    text = dot(root)
    assert r"\<w\ &\ \"1\"\>" in text and r"a\|\{b\}" in text


@pytest.mark.requirement("R-002")
def test_dot_lists_nodes_operations_and_edges() -> None:
    nodes = graphs.figure_1()
    nodes["L"].backward()
    text = dot(nodes["L"])
    assert text.startswith("digraph {\n  rankdir=LR;") and text.endswith("}\n")
    names = dict(re.findall(r'(n\d+) \[shape=record, label="(\w+)\|', text))
    assert sorted(names.values()) == sorted(nodes)
    assert r'label="w1|data\ 2|grad\ 6"' in text
    assert len(re.findall(r"shape=circle", text)) == 3
    edges = {(names[a], names[b]) for a, b in re.findall(r"(n\d+) -> (n\d+)op;", text)}
    assert edges == {(c.label, node.label) for node in nodes.values() for c in node.children}


def test_drawing_is_deterministic_and_limited() -> None:
    assert svg(graphs.neuron()["y"]) == svg(graphs.neuron()["y"])
    many = Value(1.0)
    for _ in range(500):
        many = many.tanh()
    for draw in (svg, dot):
        with pytest.raises(ConfigError, match=r"draw: 501 nodes \(at most 400"):
            draw(many)
