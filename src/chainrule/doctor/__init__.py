"""What goes wrong in a model or its training, why, and what to try.

A finding says what was measured, what it means and what to do. `limits` holds every threshold; `preflight` looks
before the first step, `monitor` during training, `diagnose` at any model.
"""

from chainrule.doctor import limits
from chainrule.doctor.finding import Finding
from chainrule.doctor.report import Report, diagnose
from chainrule.doctor.verdict import verdict
from chainrule.doctor.watch import Watch

__all__ = ["Finding", "Report", "Watch", "diagnose", "limits", "verdict"]
