"""Experiments that teach: toy networks and tasks that show one effect each.

Only `cli` and `web` import this room; nothing that a model needs in use lives here.
"""

from chainrule.lessons import laboratory, memory
from chainrule.lessons.grid_search import Trial, grid_search

__all__ = ["Trial", "grid_search", "laboratory", "memory"]
