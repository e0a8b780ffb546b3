"""Work that leaves one process: `communicator` joins processes that train one model, `executor` shares out items."""

from chainrule.distributed.communicator import Communicator, world
from chainrule.distributed.executor import Outcome, each

__all__ = ["Communicator", "Outcome", "each", "world"]
