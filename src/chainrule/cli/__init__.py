"""The command `chainrule`.

`main` finds a command and shows what goes wrong; `commands` has a file for each; `args` reads options, `render` shows
results.
"""

from chainrule.cli.main import COMMANDS, main

__all__ = ["COMMANDS", "main"]
