"""`chainrule serve` with a model that fails on purpose: whenever it reads `POISON` in a prompt.

python -m benchmarks.serving.faulty serve DIR
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

POISON = 253  # a token that no other prompt of the load test has


def main() -> None:
    from chainrule.cli import main
    from chainrule.serve.batching.caches import DecoderCaches

    read = DecoderCaches.read

    def failing(self: DecoderCaches, pieces: Sequence[Sequence[int]], *more: Any) -> Any:
        if any(POISON in piece for piece in pieces if len(piece) > 1):
            raise RuntimeError("a fault on purpose")
        return read(self, pieces, *more)

    DecoderCaches.read = failing  # type: ignore[method-assign]
    main()


if __name__ == "__main__":
    main()
