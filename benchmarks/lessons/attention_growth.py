"""Scores grow with the square of the length: the time of attention for n, 2n, 4n, ... as a Markdown table.

    python -m benchmarks.lessons.attention_growth

One sequence, 4 heads of 64 channels, without a mask, forward, on one thread, by its own clock. Beside the time the
multiply-adds, whose ratio is 4 exactly; the linear layers of the same block only double.
"""

from __future__ import annotations

from benchmarks.harness import command_line
from benchmarks.report import markdown
from chainrule.lessons.attention_scores import growth
from chainrule.scaling.complexity import operations

HEADS, SIZE = 4, 64
LENGTHS = (256, 512, 1024, 2048, 4096)


def main() -> None:
    command_line(__doc__).parse_args()
    width = HEADS * SIZE
    rows, before = [], None
    for n, _, seconds in growth(LENGTHS, heads=HEADS, size=SIZE):
        work = operations(n, width, 4 * width)
        ratio = "–" if before is None else f"{seconds / before:.2f}"
        took = f"{1e3 * seconds:.2f}"
        rows.append([str(n), took, ratio, f"{work.pop('attention'):,}", f"{sum(work.values()):,}"])
        before = seconds
    print(markdown(["tokens", "ms", "ratio", "multiply-adds of attention", "of the matrices"], rows))


if __name__ == "__main__":
    main()
