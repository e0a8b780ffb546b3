"""`python -m chainrule.cli`, the same as the command `chainrule`."""

from chainrule.cli import main

if __name__ == "__main__":
    main()
