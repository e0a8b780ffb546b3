"""A forward pass as a graph of op calls, recorded by running it once without computing.

From the graph come parameter, FLOP and memory counts, decoder programs, the reference interpreter, and pictures.
"""

from chainrule import lazy
from chainrule.trace.graph import Given, Graph, Node, NotStreamable, Value, trace
from chainrule.trace.picture import picture

__all__ = ["Given", "Graph", "Node", "NotStreamable", "Value", "picture", "trace"]

lazy.names(__name__)
