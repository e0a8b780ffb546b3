"""Reverse-mode differentiation of single numbers: the whole idea on one screen, and the oracle of small tests.

`engine` is the graph, `nn` a small network, `graphs` worked examples, `draw` and `layout` pictures.
"""

from chainrule import lazy
from chainrule.scalar import graphs
from chainrule.scalar.draw import dot, svg
from chainrule.scalar.engine import Value, add, multiply
from chainrule.scalar.nn import MLP, Layer, Neuron

__all__ = ["MLP", "Layer", "Neuron", "Value", "add", "dot", "graphs", "multiply", "svg"]

lazy.names(__name__)
