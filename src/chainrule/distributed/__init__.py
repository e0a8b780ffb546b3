"""Work that leaves one process: `executor` runs independent items side by side."""

from chainrule.distributed.executor import Outcome, each

__all__ = ["Outcome", "each"]
