"""What runs a model token by token: a plan of its traced forward pass, the extension's program, weight formats."""

from chainrule.generate.engine.decoder import Decoder
from chainrule.generate.engine.plan import Engine, Plan

__all__ = ["Decoder", "Engine", "Plan"]
