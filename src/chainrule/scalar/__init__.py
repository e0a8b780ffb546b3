"""Reverse-mode differentiation of single numbers: the whole idea on one screen, and the oracle of small tests.

`engine` is the graph, `expression` reads one from text, `nn` is a small network, `graphs` worked examples, `draw` and
`layout` pictures.
"""

from chainrule import lazy
from chainrule.scalar import graphs
from chainrule.scalar.draw import dot, svg
from chainrule.scalar.engine import Value, add, multiply
from chainrule.scalar.expression import Expression, backward_steps
from chainrule.scalar.nn import MLP, Layer, Neuron

__all__ = [
    "MLP", "Expression", "Layer", "Neuron", "Value", "add", "backward_steps", "dot", "graphs", "multiply", "svg"
]  # fmt: skip

lazy.names(__name__)
