"""The list of commands, and which of them was meant."""

from __future__ import annotations

from chainrule.cli.args.familiar import command_hint
from chainrule.cli.render import wrap
from chainrule.cli.table import COMMANDS
from chainrule.suggest import closest


def overview(group: str = "") -> str:
    """All commands, or those that begin with a word if there are any."""
    about = {name: about for name, (_, about) in COMMANDS.items() if about}
    of_group = {name: text for name, text in about.items() if name.split()[0] == group}
    column, width = max(map(len, about)) + 4, wrap.width()
    shown = (of_group or about).items()
    listed = [line for name, text in shown for line in wrap.entry(f"  {name}", text, column, width)]
    end = (
        "`chainrule COMMAND --help` lists the options of a command. For a start: chainrule demo",
        "Every command that reads data knows --unpack-limit SIZE (such as 10G), for compressed files that grow much.",
    )
    closing = [line for sentence in end for line in wrap.paragraph(sentence, width)]
    return "\n".join(["usage: chainrule COMMAND [OPTIONS]", "", *listed, "", *closing])


def suggestion(args: list[str]) -> str:
    """Of the commands that begin with the same word, if there are any, the one that was meant, or all."""
    known = [name for name, (_, about) in COMMANDS.items() if about]
    if group := {name.partition(" ")[2]: name for name in known if name.split()[0] == args[0]}:
        near = closest(args[1], group) if args[1:] else []
        return f"did you mean {group[near[0]]}?" if near else f"there are {', '.join(group.values())}"
    if hint := command_hint(args[0]):
        return hint
    alone = (*COMMANDS, "--help", "--version")  # what can be typed as it is
    near = closest(args[0], {*known, *alone, *(name.split()[0] for name in known)})
    if not near:
        return f"there are {', '.join(known)}"
    meant = next((name for name in (" ".join([*near, *args[1:2]]), *near) if name in alone), None)
    return f"did you mean {meant}?" if meant else suggestion([*near, *args[1:]])
