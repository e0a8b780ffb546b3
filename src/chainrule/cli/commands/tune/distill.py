"""`chainrule tune distill`"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import chainrule as cr
from chainrule.cli.args.documents import ChatColumns
from chainrule.cli.args.model_defaults import model_sampling
from chainrule.cli.args.options import Argument, Given, Reporting
from chainrule.cli.args.outputs import NewFile
from chainrule.cli.commands.data.mix import write_conversations
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.tables import show
from chainrule.columns import Columns
from chainrule.errors import ConfigError
from chainrule.generate import Sampling
from chainrule.validate import Check


@dataclass(frozen=True)
class Command(Reporting):
    """Let a teacher answer the questions of a file; a student is then tuned on the answers.

    Example: chainrule tune distill runs/teacher questions.jsonl --num-samples 4 --out answers.jsonl
    """

    teacher: Annotated[Path, Argument("TEACHER")]
    """A model that answers: a tuned run, or anything with a chat template that `chainrule import` takes."""
    file: Annotated[str, Argument("FILE")]
    """Conversations; the first question of each is asked, their answers are not read. Or docstrings."""
    out: Annotated[Path, NewFile]
    """The new .jsonl file, an object with "messages" per line."""
    num_samples: int = 1
    """Answers to each question, drawn with the seeds --seed, --seed + 1, ...; equal ones are written once."""
    limit: int | None = None
    """Questions to ask, from everywhere in the file. Default: all."""
    sampling: Sampling = field(default_factory=lambda: Sampling(max_new_tokens=200))
    columns: ChatColumns = field(default_factory=Columns)
    given: Given = field(default_factory=Given)

    def run(self) -> None:
        from chainrule.align.distill import teacher_answers

        Check("distill", self).at_least(1, "num_samples", *(["limit"] if self.limit is not None else []))
        teacher, tokenizer = cr.runs.load_language_model(self.teacher)
        if tokenizer.conventions.chat_template is None:
            rule = "must be tuned on conversations, or come with a chat template"
            raise ConfigError(f"{self.teacher}: a model that does not answer ({rule})")
        talks = cr.data.load_conversations(self.file, self.columns).conversations
        questions = list(dict.fromkeys(talk.question for talk in talks))
        asked = [questions[i] for i in cr.data.spread(len(questions), self.limit or len(questions))]
        sampling = model_sampling(self.sampling, tokenizer, self.given)
        found: list[cr.data.Conversation] = []
        with Progress("answers") as progress:
            for number in range(self.num_samples):
                how = replace(sampling, seed=sampling.seed + number)

                def tell(tokens: int, number: int = number) -> None:
                    progress.say(f"sample {number + 1} of {self.num_samples}, {tokens:,} tokens")

                found += teacher_answers(teacher, tokenizer, asked, how, tell)
        kept = write_conversations(self.out, found)
        empty = len(asked) * self.num_samples - len(found)
        counts = {"questions": len(asked), "answers": kept, "copies": len(found) - kept, "empty": empty}
        show(counts | {"out": str(self.out)}, self.json)
