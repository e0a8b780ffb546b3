"""The command `chainrule`.

`table` lists the commands and `main` finds one; `exits` shows what goes wrong. `commands` has a file for each; `args`
reads options, `render` shows results.
"""

from chainrule.cli.main import main
from chainrule.cli.table import COMMANDS

__all__ = ["COMMANDS", "main"]
