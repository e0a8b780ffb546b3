"""`chainrule tune advise`"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated

from chainrule.cli.args.options import Argument, Reporting
from chainrule.models.tuning.advise import Needs, advise, storage

BYTES = 2  # of a weight, in 16 bits


@dataclass(frozen=True)
class Command(Reporting):
    """Say which method of tuning suits the amount of data and what is needed, and why.

    Example: chainrule tune advise --examples 5000 --tasks 3
    """

    base: Annotated[str, Argument("BASE")] = ""
    """The model to tune, for sizes on disk: a run, a Hugging Face directory, a .gguf or a llama2.c .bin file."""
    needs: Needs = field(default_factory=Needs)

    def run(self) -> None:
        found = advise(self.needs)
        sizes = self._sizes(found.method)
        if self.json:
            print(json.dumps({"method": found.method, "reasons": found.reasons} | sizes))
            return
        print(f"{found.method}: {'; '.join(found.reasons)}")
        if sizes:
            from chainrule.cli.render.numbers import size

            what = "1 task" if self.needs.tasks == 1 else f"{self.needs.tasks} tasks"
            full, small = size(sizes["bytes_full"]), size(sizes["bytes_method"])
            print(
                f"on disk for {what}, in 16 bits: {full} with all weights learning, {small} by {found.method}"
            )
        if found.method != "prompting":
            from chainrule.cli.render.show import command_line

            words = command_line("tune", self.base or "BASE", "DATA", "--method", found.method)
            print(f"tune with: {words}")

    def _sizes(self, name: str) -> dict[str, int]:
        """Bytes of the models of all tasks, each whole, and as adapters beside one base."""
        if not self.base:
            return {}
        from chainrule.cli.render.progress import Progress
        from chainrule.models.tuning import METHODS
        from chainrule.runs import load

        with Progress(f"read {self.base}"):
            model = load(self.base)[0]
        tasks, whole = self.needs.tasks, model.count()
        learned = METHODS[name]().n_params(model) if name in METHODS else 0
        beside = storage(whole, BYTES) + storage(learned, BYTES, tasks)
        full = storage(whole, BYTES, tasks)
        return {"bytes_full": int(full), "bytes_method": int(full if name == "full" else beside)}
