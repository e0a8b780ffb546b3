"""What goes wrong in a model or its training, why, and what to try.

A finding has a code (`finding.py`) and the words of that code (`messages.py`); `limits.py` holds every threshold.
`preflight` looks before the first step, `monitor` during training, `diagnose` at any model.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.doctor import limits, rules
    from chainrule.doctor.finding import Code, Finding
    from chainrule.doctor.monitor import Monitor
    from chainrule.doctor.report import Report, diagnose
    from chainrule.doctor.rules import initial_loss
    from chainrule.doctor.verdict import verdict
    from chainrule.doctor.watch import Watch

__all__ = [
    "Code", "Finding", "Monitor", "Report", "Watch", "diagnose", "initial_loss", "limits", "rules", "verdict"
]  # fmt: skip

lazy.names(
    __name__,
    rooms="explain finding limits messages monitor nonfinite preflight report rules settings watch",
    finding="Code Finding",
    monitor="Monitor",
    report="Report diagnose",
    rules="initial_loss",
    verdict="verdict",
    watch="Watch",
)
