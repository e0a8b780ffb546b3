"""Values of a graph on their way to registers: written as late as possible, so that neighbors become one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from chainrule.trace.graph import Given, Graph, Node, Value
from chainrule.trace.terms import (
    Embedded,
    Instruction,
    Linear,
    Register,
    SourceRows,
    Sum,
    Unsupported,
    padded,
    stacked,
)


class Registers:
    """The instructions so far, and what each value of the graph is."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.origins = graph.origins()
        self.values: dict[Any, Any] = {}
        self.uses = Counter(s for node in graph.nodes for s in node.inputs if isinstance(s, Value))
        self.uses.update(s for s in graph.outputs if isinstance(s, Value))
        self.instructions: list[Instruction] = []

    def source(self, source: Any) -> Any:
        if isinstance(source, Value):
            return self.values[source]
        return SourceRows() if isinstance(source, Given) else source

    def emit(self, name: str, width: int, reads: tuple[Register, ...], **arguments: Any) -> Sum:
        out = Register(width)
        self.instructions.append(Instruction(name, out, reads, arguments))
        return Sum((out,), width)

    def row_step(self, node: Node, name: str, **arguments: Any) -> Sum:
        x = self.written(node.inputs[0])
        return self.emit(name, x.width, (x,), **arguments)

    def terms(self, source: Any) -> tuple[Register | Linear, ...]:
        """The terms of a sum; a value that others read too is written to a register first."""
        if not isinstance(source, Value):
            raise Unsupported("lower: an array that is no parameter of a layer cannot be added")
        if self.uses[source] > 1 or not isinstance(self.values.get(source), Sum):
            return (self.written(source),)
        value: Sum = self.values[source]
        return value.terms

    def lazy(self, source: Any) -> Any:
        value = self.source(source)
        if isinstance(value, SourceRows):
            return value
        terms = self.terms(source)
        return Sum(terms, self.values[source].width)

    def written(self, source: Any) -> Register:
        """The register that holds a value, written now if it is not there yet."""
        value = self.source(source)
        if isinstance(value, Embedded):
            arguments = {"table": value.table, "scale": value.scale, "positions": value.positions}
            arguments["prompt"] = value.prompt
            value = self.emit("embedding", value.table.shape[1], (), **arguments)
        if not isinstance(value, Sum):
            raise Unsupported(f"lower: a {type(value).__name__} cannot be written to a register")
        out = self.add_up(value.terms, value.width)
        self.values[source] = Sum((out,), out.width)
        return out

    def add_up(self, terms: Sequence[Register | Linear], width: int) -> Register:
        registers = [term for term in terms if isinstance(term, Register)]
        total = registers[0] if registers else None
        for term in terms:
            if term is total:
                continue
            out = Register(width)
            if isinstance(term, Linear):
                arguments = {"weight": term.weight, "bias": term.bias, "activation": term.activation}
                step = Instruction("linear", out, (term.x,), arguments, base=total)
            else:
                step = Instruction("add", out, (term,), base=total)
            self.instructions.append(step)
            total = out
        assert total is not None
        return total

    def columns(self, node: Node, sums: Sequence[Sum]) -> Register:
        """Several sums side by side in one register: matmuls of the same input become one."""
        if len(sums) == 1:
            return self.add_up(sums[0].terms, sums[0].width)
        together: dict[Register, list[Linear | None]] = {}
        extra: list[Linear] = []
        for place, each in enumerate(sums):
            for term in each.terms:
                if not isinstance(term, Linear) or term.activation:
                    raise Unsupported(f"lower: {node.name} joins more than linear layers")
                beside = together.setdefault(term.x, [None] * len(sums))
                if beside[place] is None:
                    beside[place] = term
                else:
                    extra.append(padded(term, place, sums))
        linears: list[Linear] = []
        for beside in together.values():
            terms = [(place, term) for place, term in enumerate(beside) if term is not None]
            whole = len(terms) == len(sums)
            linears += [stacked([p for _, p in terms])] if whole else [padded(p, i, sums) for i, p in terms]
        return self.add_up([*linears, *extra], sum(each.width for each in sums))
