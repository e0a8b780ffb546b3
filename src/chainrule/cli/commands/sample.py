"""`chainrule sample`"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from chainrule.cli.answering import TASKS, Task
from chainrule.cli.args.options import Argument
from chainrule.cli.args.text import read_input
from chainrule.cli.args.unused import given
from chainrule.cli.render.progress import Progress
from chainrule.cli.translating import listed, translations
from chainrule.errors import ConfigError, DataError, Setting
from chainrule.generate import Beam, Request, Sampling, beam_search, complete, score, write
from chainrule.generate.beam import WIDEST
from chainrule.generate.readers import check_fp32
from chainrule.generate.sample import Model, encoded
from chainrule.models import LanguageModel, Seq2Seq
from chainrule.runs.load import load_any
from chainrule.text import TextStream, Tokenizer
from chainrule.validate import Check

ASKED = ("run_folder", "prompt", "prompts_file", "json")  # the fields that are for every kind of model
SEARCHED = ("max_new_tokens", "stop_tokens")  # the fields of `Sampling` that a search has too
Weights = Literal["fp32", "bf16", "int8", "int4"]


@dataclass(frozen=True)
class Command:
    """Let a trained model go on from prompts; others answer them.

    An encoder-decoder translates each prompt, a classifier labels it, a tagger its words, a BERT guesses each [MASK].

    Example: chainrule sample runs/demo --prompt "The return value " --temperature 0.7 --top-p 0.9 --seed 3
    """

    run_folder: Annotated[Path, Argument("RUN")]
    """Directory of a run, one of its checkpoints, or anything that `chainrule import` takes."""
    prompt: str = ""
    """Text to go on from. Nothing stands for a new line; if the tokenizer has none, a space, full stop or token 0."""
    prompts_file: str | None = None
    """A file with a prompt on each line, or - for standard input, instead of --prompt."""
    num_samples: int = 1
    """Texts for each prompt: drawn with the seeds --seed, --seed + 1, ...; with --beam, the best ones."""
    sampling: Sampling = field(default_factory=Sampling)
    beam: int | None = None
    """Search for the likeliest text instead of drawing one: so many unfinished texts are kept at each step,
    at most 1000."""
    length_penalty: float = 0.6
    """With --beam: 0 compares texts by log-probability, which favours short ones; the higher, the longer."""
    weights: Weights = "fp32"
    """How weights are held: fewer bits take less memory and time, and lose a little (docs/inference.md).
    GPT and Llama only."""
    logprobs: bool = False
    """Also print the log-probability of each token, of the prompt and of the text."""
    json: bool = False
    """Print a JSON object for each text, one per line."""

    def run(self) -> None:
        prompts = [self.prompt] if self.prompts_file is None else prompts_in(self.prompts_file, self.prompt)
        if self.num_samples < 1:
            raise ConfigError.of("sample", {"num_samples": self.num_samples}, "must be at least 1")
        model, tokenizer = load_any(self.run_folder)
        if task := TASKS.get(type(model)):
            self._answer(task, model, tokenizer, prompts)
            return
        self._refuse_unused(model)
        if isinstance(model, Seq2Seq):
            check_fp32(model, self.weights)
            options = self._samplings() if self.beam is None else self._beam(self.beam)
            found = translations(model, tokenizer, prompts, options, scored=self.logprobs)
        elif not isinstance(model, LanguageModel):
            rule = "must be a language model, an encoder-decoder, a classifier, a tagger or a BERT"
            raise ConfigError(f"{self.run_folder}: holds a {type(model).__name__} ({rule})")
        elif self.beam is not None:
            found = self._searched(model, tokenizer, prompts, self._beam(self.beam))
        elif len(prompts) * self.num_samples > 1 or self.logprobs or self.json:
            found = self._drawn(model, tokenizer, prompts)
        else:
            self._stream(model, tokenizer, prompts[0])
            return
        for number, result in enumerate(found):
            if self.json:
                print(json.dumps(result, ensure_ascii=False))
            elif isinstance(model, Seq2Seq) and self.num_samples == 1 and not self.logprobs:
                print(result["text"])  # a line for each source
            else:
                print(shown(result, number, " -> " if isinstance(model, Seq2Seq) else ""))

    def _answer(self, task: Task, model: Any, tokenizer: Tokenizer, prompts: list[str]) -> None:
        for name in given(self, but=(*ASKED, *task.reads)):
            said = f" is given for {task.who}, which does not write (leave it out)"
            raise ConfigError("sample: ", Setting(name), said)
        with Progress("answer"):
            found = list(task.run(model, tokenizer, prompts, self.sampling))
        for answer in found:
            print(json.dumps(answer, ensure_ascii=False) if self.json else task.in_words(answer))

    def _stream(self, model: Model, tokenizer: Tokenizer, prompt: str) -> None:
        options = {name: value for name, value in vars(self.sampling).items() if name != "max_new_tokens"}
        n = self.sampling.max_new_tokens
        pieces = write(model, tokenizer, prompt, n, weights=self.weights, **options)
        print(prompt, end="", flush=True)
        for piece in pieces:
            print(piece, end="", flush=True)
        print()

    def _drawn(self, model: Model, tokenizer: Tokenizer, prompts: list[str]) -> Iterator[dict[str, Any]]:
        samplings = self._samplings()
        each = [prompt for prompt in prompts for _ in samplings]
        with Progress("sample") as progress:
            requests = complete(
                model,
                tokenizer,
                each,
                samplings * len(prompts),
                weights=self.weights,
                scored=self.logprobs,
                tell=lambda tokens: progress.say(f"{tokens:,} tokens"),
            )
        for prompt, request in zip(each, requests, strict=True):
            result = {"prompt": prompt, "text": request.text, "seed": request.sampling.seed}
            yield result | {"finish": request.finish} | self._logprobs(model, tokenizer, request)

    def _logprobs(self, model: Model, tokenizer: Tokenizer, request: Request) -> dict[str, Any]:
        if request.logprobs is None:
            return {}
        before = [None, *score(model, request.prompt).tolist()]
        return {
            "prompt_logprobs": listed(tokenizer, request.prompt, before),
            "logprobs": listed(tokenizer, request.tokens, request.logprobs),
        }

    def _samplings(self) -> list[Sampling]:
        return [replace(self.sampling, seed=self.sampling.seed + i) for i in range(self.num_samples)]

    def _refuse_unused(self, model: object) -> None:
        """What would be ignored, such as how to draw where a search is made."""
        if self.beam is None:
            if "length_penalty" in given(self):
                said = " is given without beam (must be with it, or left out)"
                raise ConfigError("sample: ", Setting("length_penalty"), said)
            return
        for name in given(self.sampling, but=SEARCHED):
            fix = "a search does not draw: leave one of them out"
            rule = ("must be ", Setting("stop_tokens")) if name == "stop" else (fix,)
            raise ConfigError("sample: ", Setting(name), " is given with beam (", *rule, ")")
        if self.logprobs and isinstance(model, Seq2Seq):
            said = " is given with beam (a search knows only the sum, which it prints: leave it out)"
            raise ConfigError("sample: ", Setting("logprobs"), said)

    def _beam(self, width: int) -> Beam:
        check = Check("sample", self)
        check.whole(1, WIDEST, "beam")
        few = self.num_samples <= width
        check.require(few, "num_samples", "beam", rule="must be at most as many")
        return Beam(
            width=width,
            n_best=self.num_samples,
            length_penalty=self.length_penalty,
            max_new_tokens=self.sampling.max_new_tokens,
            stop_tokens=self.sampling.stop_tokens,
        )

    def _searched(
        self, model: Model, tokenizer: Tokenizer, prompts: list[str], beam: Beam
    ) -> Iterator[dict[str, Any]]:
        for prompt in prompts:
            ids = encoded(tokenizer, prompt)
            with Progress("search"):
                found = beam_search(model, ids, beam, weights=self.weights)
            for hypothesis in found:
                result: dict[str, Any] = {
                    "prompt": prompt,
                    "text": text_of(tokenizer, ids, hypothesis.tokens),
                }
                result |= {"logprob": hypothesis.logprob, "score": hypothesis.score}
                if self.logprobs:
                    logs = score(model, [*ids, *hypothesis.tokens])[len(ids) - 1 :].tolist()
                    result |= {"logprobs": listed(tokenizer, hypothesis.tokens, logs)}
                yield result | {"finish": "stop" if hypothesis.finished else "length"}


def prompts_in(source: str, prompt: str) -> list[str]:
    """The lines of a file"""
    if prompt:
        said = {"prompt": prompt, "prompts_file": source}
        raise ConfigError.of("sample", said, "must be one of them")
    if source != "-" and not Path(source).is_file():
        raise DataError(f"{source}: no such file (must have a prompt on each line)")
    text = read_input(source).replace("\r\n", "\n")
    if not text:
        raise DataError(f"{source}: is empty (must have a prompt on each line)")
    return text.removesuffix("\n").split("\n")


def text_of(tokenizer: Tokenizer, prompt: Any, tokens: Sequence[int]) -> str:
    stream = TextStream(tokenizer, after=prompt)
    return "".join([*map(stream.push, tokens), stream.close()])


def shown(result: dict[str, Any], number: int, between: str = "") -> str:
    """One text for people: how it came about, the text, the log-probabilities"""
    facts = ", ".join(f"{key} {result[key]:.5g}" for key in ("seed", "logprob", "score") if key in result)
    lines = [f"--- {number + 1}: {facts}", result["prompt"] + between + result["text"]]
    for token in [*result.get("prompt_logprobs", ()), *result.get("logprobs", ())]:
        log = "" if token["logprob"] is None else f"{token['logprob']:.4f}"
        lines.append(f"{log:>10}  {token['token']!r}")
    return "\n".join(lines)
