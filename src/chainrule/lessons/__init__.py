"""Figures and experiments that teach: toy networks and tasks that show one effect each.

Only `cli` and `web` import this room; no model needs it. The numbers are computed here, they draw them.
"""

from chainrule import lazy
from chainrule.lessons import initialization, positions, sequence_tasks
from chainrule.lessons.attention_scores import growth, score_variance
from chainrule.lessons.depth import gradients_by_depth, random_stack
from chainrule.lessons.grid_search import Trial, grid_search
from chainrule.lessons.logits import hand_made_logits

__all__ = [
    "Trial", "gradients_by_depth", "grid_search", "growth", "hand_made_logits", "initialization", "positions",
    "random_stack", "score_variance", "sequence_tasks"
]  # fmt: skip

lazy.names(__name__)
