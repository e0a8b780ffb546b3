"""Work that leaves one process: `communicator` joins processes that train one model, `exchange` adds up their gradients
while they are computed, `executor` shares out items of independent work.
"""

from chainrule.distributed.communicator import Communicator, everyone, world
from chainrule.distributed.exchange import Exchange, buckets
from chainrule.distributed.executor import Outcome, alone, each, in_order, ranks_as_workers

__all__ = [
    "Communicator", "Exchange", "Outcome", "alone", "buckets", "each", "everyone", "in_order", "ranks_as_workers",
    "world",
]  # fmt: skip
