"""`python -m chainrule.cli`, the same as the command `chainrule`."""

from chainrule.cli import main

main()
