"""`chainrule align ppo`"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from chainrule.align.config import PPOConfig
from chainrule.cli.args.options import Argument, Help, Without
from chainrule.cli.args.runs.align import AlignOptions
from chainrule.errors import ConfigError, Setting

if TYPE_CHECKING:
    from chainrule.runs import Run

PROMPTS = (
    "Prompts: a .txt with one per line, or a .jsonl, .json, .csv or .parquet with prompt, instruction and input, or "
    "messages; a file of preferences will do."
)


@dataclass(frozen=True)
class Command(AlignOptions):
    """Generate answers with a language model, which learns from their reward: PPO, REINFORCE or GRPO.

    The policy begins as a copy of BASE, which stays as the reference: an answer costs beta for each nat that it is
    likelier than under BASE. A step writes an answer to each of --batch-size prompts, scores them, and makes --epochs
    updates. log.jsonl has objective/rlhf_reward, objective/kl, policy/clipfrac and others of every step, and the time
    of rollout, scoring and update.

    Example: chainrule align ppo runs/chat prompts.txt --reward runs/reward --out runs/ppo
    """

    verb: ClassVar[str] = "ppo"
    reads: ClassVar[str] = "reading the prompts"
    data: Annotated[Path | None, Argument("FILE"), Help(PROMPTS)] = None
    reward: Path | None = None
    """A run of `chainrule align reward`, which scores the answers."""
    reward_function: str | None = None
    """MODULE:NAME of a Python function instead: it is given a list of prompts and a list of answers, texts, and returns
    a list of numbers. This imports MODULE, from the present directory too, and runs it."""
    method: Literal["ppo", "reinforce", "grpo"] = "ppo"
    """ppo has a value head; reinforce and grpo compare --group answers to each prompt with each other."""
    group: int = 8
    """Answers to each prompt, for reinforce and grpo."""
    policy: Annotated[PPOConfig, Without(("lr", "grad_clip", "end", "seed"))] = field(
        default_factory=PPOConfig
    )

    def own(self) -> dict[str, Any]:
        """The settings that are given: those of the method have their own defaults."""
        said = vars(self.policy) | vars(self)
        given = {name: said[name] for name in self.task().options if name in self.given}
        if self.reward_function is not None:
            given["reward_function"] = imported(self.reward_function)
        return given | {"algorithm": self.method}

    def resumed(self, folder: Path) -> Run:
        from chainrule.runs import Run

        given = self.reward_function
        return Run.resume(folder, **({} if given is None else {"reward_function": imported(given)}))

    def said(self) -> dict[str, Any]:
        return vars(self) | vars(self.policy) | {"reward": self.reward and str(self.reward.absolute())}

    def spoken(self, run: Run) -> dict[str, Any]:
        """A function is not among them: no file should name code that is run."""
        facts = {name: value for name, value in super().spoken(run).items() if name != "reward_function"}
        facts["method"] = facts.pop("algorithm")
        return facts | ({"reward": facts["reward"]["path"]} if "reward" in facts else {})


def imported(name: str) -> Any:
    """The function MODULE:NAME, which is code of the user."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ConfigError("ppo: ", Setting("reward_function"), f" is {name} (must be MODULE:NAME)")
    sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            "ppo: ", Setting("reward_function"), f" {name}: {error} (must be importable)"
        ) from error
    finally:
        sys.path.remove("")
    function = getattr(found, attribute, None)
    if not callable(function):
        raise ConfigError(
            "ppo: ", Setting("reward_function"), f" {name}: no such function in {module} (must be one)"
        )
    return function
