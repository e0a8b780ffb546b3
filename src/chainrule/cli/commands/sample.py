"""`chainrule sample`"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import chainrule as cr
from chainrule.cli.args.documents import TextColumns, texts_in
from chainrule.cli.args.model_defaults import model_sampling
from chainrule.cli.args.options import Argument, Given
from chainrule.cli.args.unused import given, refuse
from chainrule.cli.render.progress import Progress
from chainrule.cli.render.show import used
from chainrule.columns import Columns
from chainrule.errors import ConfigError, Setting
from chainrule.generate import Sampling
from chainrule.generate.sampling import MOST_SAMPLES
from chainrule.types import CacheFormat, WeightFormat
from chainrule.validate import Check

# The fields that are for every kind of model.
ASKED = ("run_folder", "prompt", "prompts_file", "text_column", "header", "json")
SEARCHED = ("max_new_tokens", "stop_tokens")  # the fields of `Sampling` that a search has too
# The fields that ask a translator for texts that are drawn.
DRAWN = {"temperature", "top_k", "top_p", "min_p", "typical", "num_samples"}
Weights = Literal["stored", WeightFormat]


@dataclass(frozen=True)
class Command:
    """Generate text with a trained model, or have it answer prompts.

    An encoder-decoder translates each prompt, by the likeliest tokens unless --beam is given, or what asks it to draw:
    --temperature, --top-k, --top-p, --min-p, --typical or --num-samples. A classifier labels it, a tagger its words, a
    BERT guesses each [MASK].

    Example: chainrule sample runs/demo --prompt "The return value " --temperature 0.7 --top-p 0.9 --seed 3
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run, one of its checkpoints, or anything that `chainrule import` takes."""
    prompt: str = ""
    """Text to continue. If it is empty the model starts after a new line, or after a space, full stop or token 0."""
    prompts_file: str | None = None
    """A file with a prompt on each line, or a table with one in each row, or - for standard input, instead of
    --prompt."""
    columns: TextColumns = field(default_factory=Columns)
    num_samples: int = 1
    """Texts for each prompt: sampled with the seeds --seed, --seed + 1, ...; with --beam, the best ones."""
    sampling: Sampling = field(default_factory=Sampling)  # every field is a flag too: generate/sampling.py
    beam: int | None = None
    """Beam search for the likeliest text instead of sampling; this is the number of beams, at most 1000."""
    length_penalty: float = 0.6
    """With --beam: 0 compares texts by log-probability, which favors short ones; higher values favor longer texts."""
    weights: Weights = "stored"
    """Format of the weights: fewer bits take less memory and time, and lose a little accuracy. stored: as a
    GGUF file has them, all else in fp32. For models that read token by token; see
    docs/understand/inference.md."""
    cache: CacheFormat = "fp32"
    """Format of the keys and values that a transformer remembers of each token: bf16 takes half the memory, int8
    about a quarter."""
    logprobs: bool = False
    """Also print the log-probability of each token, of the prompt and of the text."""
    special: bool | None = None
    """Read special tokens that the prompt names, such as <|im_end|>, and print those that the model writes. Without it
    they are read if the model has a chat template, and not printed; with --no-special they are ordinary text."""
    json: bool = False
    """Print a JSON object for each text, one per line."""
    given: Given = field(default_factory=Given)

    def run(self) -> None:
        from chainrule.runs.load import open_model, task_of_run

        prompts = (
            [self.prompt]
            if self.prompts_file is None
            else prompts_in(self.prompts_file, self.prompt, self.columns)
        )
        Check("sample", self).whole(1, MOST_SAMPLES, "num_samples")
        if self.prompts_file is None:
            refuse(
                "sample", self.columns, "without prompts_file (must be with a table of prompts, or left out)"
            )
        loaded = open_model(self.run_folder, to_decode=True)
        model, tokenizer, _ = loaded
        used(self.run_folder)
        task = task_of_run(loaded)
        options = self._options(task)
        if isinstance(model, cr.models.LanguageModel):
            options = self._for_model(options, tokenizer, prompts)
        elif not {"prompt", "prompts_file"} & self.given:
            what = "must be a text to translate" if task.writes else "must be a text for it to read"
            raise ConfigError("sample: ", Setting("prompt"), f" is not given for {task.model} ({what})")
        elif self.special is not None:
            raise ConfigError("sample: ", Setting("special"), f" is given for {task.model} (leave it out)")
        one = len(prompts) * self.num_samples == 1 and not (self.logprobs or self.json or self.beam)
        if one and (pieces := task.stream(model, tokenizer, prompts[0], options)):
            for piece in chain([prompts[0]], pieces):
                print(piece, end="", flush=True)
            print()
            return
        for number, answer in enumerate(told(partial(task.answer, model, tokenizer, prompts, options))):
            print(json.dumps(answer, ensure_ascii=False) if self.json else task.show(answer, number, options))

    def _options(self, task: type[cr.tasks.Task]) -> cr.tasks.AnswerOptions:
        """What was asked for; what would be ignored is refused, such as how to draw where a search is made."""
        if not task.writes:
            why = f"for {task.model}, which does not write (leave it out)"
            refuse("sample", self, why, but=(*ASKED, *task.reads))
        if self.beam is None and "length_penalty" in given(self):
            said = " is given without beam (must be with it, or left out)"
            raise ConfigError("sample: ", Setting("length_penalty"), said)
        likeliest = task.likeliest and not DRAWN & self.given
        return cr.tasks.AnswerOptions(
            sampling=replace(self.sampling, temperature=0.0) if likeliest else self.sampling,
            num_samples=self.num_samples,
            beam=None if self.beam is None else self._beam(self.beam),
            weights=self.weights,
            cache=self.cache,
            logprobs=self.logprobs,
        )

    def _for_model(
        self, options: cr.tasks.AnswerOptions, tokenizer: cr.text.Tokenizer, prompts: list[str]
    ) -> cr.tasks.AnswerOptions:
        """The options as a language model wants them: its defaults, its end tokens, its special tokens."""
        from chainrule.text.chat.prompts import names_in

        sampling = model_sampling(self.sampling, tokenizer, self.given, quiet=options.beam is not None)
        beam = options.beam and replace(options.beam, stop_tokens=sampling.stop_tokens)
        chats = tokenizer.conventions.chat_template is not None
        special = chats if self.special is None else self.special
        if special and self.special is None and any(map(names_in(tokenizer).search, prompts)):
            fix = "with --no-special they are ordinary text"
            print(f"note: special tokens named in the prompt are read as such ({fix})", file=sys.stderr)
        return replace(
            options, sampling=sampling, beam=beam, special=special, show_special=bool(self.special)
        )

    def _beam(self, width: int) -> cr.generate.Beam:
        from chainrule.generate.beam import WIDEST

        if "stop" in given(self.sampling):
            rule = (" is given with beam (must be ", Setting("stop_tokens"), ")")
            raise ConfigError("sample: ", Setting("stop"), *rule)
        refuse(
            "sample", self.sampling, "with beam (a search does not draw: leave one of them out)", but=SEARCHED
        )
        check = Check("sample", self)
        check.whole(1, WIDEST, "beam")
        check.require(self.num_samples <= width, "num_samples", "beam", rule="must be at most as many")
        return cr.generate.Beam(
            width=width,
            n_best=self.num_samples,
            length_penalty=self.length_penalty,
            max_new_tokens=self.sampling.max_new_tokens,
            stop_tokens=self.sampling.stop_tokens,
        )


def told(answer: Callable[[Callable[[int], None]], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    """The answers one by one; progress is told while the next one is waited for."""
    progress: Progress | None = None

    def tell(tokens: int) -> None:
        if progress:
            progress.say(f"{tokens:,} tokens")

    answers = answer(tell)
    while True:
        with (progress := Progress("sample")):
            found = next(answers, None)
        if found is None:
            return
        yield found


def prompts_in(source: str, prompt: str, columns: Columns) -> list[str]:
    """The lines of a file, or the rows of a table."""
    if prompt:
        said = {"prompt": prompt, "prompts_file": source}
        raise ConfigError.of("sample", said, "must be one of them")
    return texts_in(source, columns, "prompt")
