"""Drawing a computation graph: as Graphviz text, and as SVG without any other program.

Boxes hold a name, a value and a gradient; a small round mark before a box is the operation that produced it; edges run
from the leaves on the left to the root on the right.
"""

from __future__ import annotations

import unicodedata
from html import escape

from chainrule.errors import ConfigError
from chainrule.scalar.engine import Value
from chainrule.scalar.layout import Place, arrange

MAX_NODES = 400  # a larger drawing is unreadable and slow

FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
CHAR, LINE = 7.25, 17.0  # advance and line height of the 12 px type
PAD, GAP, MARGIN = 8.0, 52.0, 16.0
BOX_HEIGHT, OP_HEIGHT = 2 * LINE + 8, 24.0
INK = "#2d3748"
FILL = {"leaf": "#eef4ff", "inner": "#ffffff", "root": "#fff3dc"}
LINES = 'stroke="#7a8599" stroke-width="1.3"'
HEAD = f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{{width:.0f}}" height="{{height:.0f}}" role="img"
  viewBox="0 0 {{width:.0f}} {{height:.0f}}" font-family="{FONT}" font-size="12">
<title>{{title}}</title>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0.8 L8 4 L0 7.2 z" fill="#7a8599"/></marker></defs>
<rect width="{{width:.0f}}" height="{{height:.0f}}" rx="8" fill="#ffffff"/>
<g fill="none" {LINES}>
"""


def dot(root: Value) -> str:
    """Graphviz text of the graph of `root`; render it with `dot -Tsvg`, or use `svg`."""
    nodes = _nodes(root)
    names = {node: f"n{i}" for i, node in enumerate(nodes)}
    lines = ["digraph {", "  rankdir=LR;", '  node [fontname="monospace", fontsize=11];']
    for node in nodes:
        cells = [node.label] if node.label else []
        cells += [f"data {_number(node.data)}", f"grad {_number(node.grad)}"]
        text = "|".join(_dot_escape(cell) for cell in cells)
        lines.append(f'  {names[node]} [shape=record, label="{text}"];')
        if node.op:
            operation = names[node] + "op"
            lines.append(f'  {operation} [shape=circle, margin=0.02, label="{_dot_escape(node.op)}"];')
            lines.append(f"  {operation} -> {names[node]};")
            lines += [f"  {names[child]} -> {operation};" for child in node.children]
    return "\n".join([*lines, "}"]) + "\n"


def svg(root: Value) -> str:
    """The graph of `root` as one self-contained SVG document."""
    nodes = _nodes(root)
    layout = arrange(root, node_size=BOX_HEIGHT, bend_size=6.0, gap=14.0)
    xs: list[_Column] = []
    x = MARGIN
    for column in layout.columns:
        found = [p.node for p in column if p.node is not None]
        xs.append(_Column(x, max(map(_op_width, found)), max(map(_box_width, found))))
        x = xs[-1].right + GAP
    width = xs[-1].right + MARGIN
    height = max(p.y + p.size / 2 for column in layout.columns for p in column) + 2 * MARGIN
    at = {p: xs[i] for i, column in enumerate(layout.columns) for p in column}
    edges = [_edge(path, at, lane) for path, lane in zip(layout.edges, _lanes(layout.edges), strict=True)]
    boxes = [_box(p.node, p.y, at[p], p.node is root) for column in layout.columns for p in column if p.node]
    title = escape(f"Computation graph of {root.label or 'one value'}: {len(nodes)} nodes")
    head = HEAD.format(width=width, height=height, title=title)
    return head + "\n".join([*edges, "</g>", *boxes, "</svg>\n"])


class _Column:
    """The horizontal extent of a column: operation marks, then boxes of equal width."""

    def __init__(self, left: float, ops: float, boxes: float) -> None:
        self.left = left
        self.op_right = left + ops
        self.box_left = self.op_right + (14.0 if ops else 0.0)
        self.right = self.box_left + boxes


def _nodes(root: Value) -> list[Value]:
    nodes = root.graph()
    if len(nodes) > MAX_NODES:
        raise ConfigError(f"draw: {len(nodes)} nodes (at most {MAX_NODES}; draw a part of the expression)")
    return nodes


def _box(node: Value, center: float, column: _Column, is_root: bool) -> str:
    y = center + MARGIN
    kind = "root" if is_root else "inner" if node.op else "leaf"
    color = "#1d5fa8" if node.grad > 0 else "#b3400a" if node.grad < 0 else "#8a94a6"
    parts = [
        f"<g><title>{escape(repr(node))}</title>",
        _rect(column.box_left, y, column.right - column.box_left, BOX_HEIGHT, 6, FILL[kind]),
        _text(column.box_left + PAD, y - 4, node.label, "start", INK, bold=True),
        _text(column.right - PAD, y - 4, _number(node.data), "end", INK),
        _text(column.box_left + PAD, y + LINE - 4, "grad", "start", "#8a94a6"),
        _text(column.right - PAD, y + LINE - 4, _number(node.grad), "end", color),
    ]
    if node.op:
        wide = _op_width(node)
        left = column.op_right - wide
        parts += [
            f'<path d="M{column.op_right:.1f} {y:.1f} H{column.box_left:.1f}" {LINES}/>',
            _rect(left, y, wide, OP_HEIGHT, OP_HEIGHT / 2, INK),
            _text(left + wide / 2, y + 4, node.op, "middle", "#ffffff"),
        ]
    return "\n".join([*(p for p in parts if p), "</g>"])


def _rect(x: float, center: float, width: float, height: float, radius: float, fill: str) -> str:
    place = f'x="{x:.1f}" y="{center - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} rx="{radius:.0f}" fill="{fill}" stroke="{INK}" stroke-width="1.2"/>'


def _edge(path: list[Place], at: dict[Place, _Column], lane: float) -> str:
    """Curves in the gaps between columns, straight lines across them."""
    y = path[0].y + MARGIN + lane
    pen = [f"M{at[path[0]].right:.1f} {y:.1f}"]
    here = at[path[0]].right
    for place in path[1:]:
        column, y_next = at[place], place.y + MARGIN + lane
        middle = (here + column.left) / 2
        pen.append(f"C{middle:.1f} {y:.1f} {middle:.1f} {y_next:.1f} {column.left:.1f} {y_next:.1f}")
        end = column.right if place.node is None else column.op_right - _op_width(place.node)
        pen.append(f"H{end:.1f}")
        here, y = column.right, y_next
    return f'<path d="{" ".join(pen)}" marker-end="url(#arrow)"/>'


def _lanes(edges: list[list[Place]]) -> list[float]:
    """A small vertical shift that separates the two edges of b + b, which join the same boxes."""
    same: dict[tuple[Place, Place], list[int]] = {}
    for i, path in enumerate(edges):
        same.setdefault((path[0], path[-1]), []).append(i)
    shifts = [0.0] * len(edges)
    for twins in same.values():
        step = min(7.0, 16.0 / len(twins))
        for k, i in enumerate(twins):
            shifts[i] = (k - (len(twins) - 1) / 2) * step
    return shifts


def _text(x: float, y: float, text: str, anchor: str, color: str, bold: bool = False) -> str:
    if not text:
        return ""
    style = f'text-anchor="{anchor}" fill="{color}"' + (' font-weight="bold"' if bold else "")
    # textLength fixes the width to that of the box, for any monospace font
    pinned = f'textLength="{_cells(text) * CHAR:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style} {pinned}>{escape(text)}</text>'


def _box_width(node: Value) -> float:
    top = _cells(node.label) + (2 if node.label else 0) + _cells(_number(node.data))
    bottom = len("grad") + 2 + _cells(_number(node.grad))
    return max(top, bottom) * CHAR + 2 * PAD


def _op_width(node: Value) -> float:
    return max(OP_HEIGHT, _cells(node.op) * CHAR + 14) if node.op else 0.0


def _cells(text: str) -> int:
    """Width in characters: wide (East Asian) ones count two, combining accents none."""
    wide = (2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text if not unicodedata.combining(c))
    return sum(wide)


def _number(x: float) -> str:
    return f"{x + 0.0:.4g}"  # + 0.0 turns -0 into 0


def _dot_escape(text: str) -> str:
    return "".join("\\" + c if c in '\\"{}|<> ' else c for c in text.replace("\n", " "))
