"""Runs a model token by token: `decoder` with its cache, `plan` traces the forward pass once, `program` compiles it for
the C++ extension, `weights` holds the weight formats, `memory` their bytes, `assign` says which text has which cache.
"""

from chainrule.generate.engine.decoder import Decoder
from chainrule.generate.engine.plan import Engine, Plan

__all__ = ["Decoder", "Engine", "Plan"]
