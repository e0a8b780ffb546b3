"""From a text to an aligned model in one go: every stage an ordinary run, and a report of what each has changed.

`stages` trains, `rule` scores the answers that preferences are made of, `compare` and `report` measure and tell.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.pipeline.config import QUICK, PipelineConfig
    from chainrule.pipeline.report import report
    from chainrule.pipeline.stages import run_pipeline

__all__ = ["QUICK", "PipelineConfig", "report", "run_pipeline"]

lazy.names(
    __name__,
    rooms="compare config rule stages",
    config="QUICK PipelineConfig",
    report="report",
    stages="run_pipeline",
)
