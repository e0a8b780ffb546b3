"""`chainrule tune show-mask`"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import chainrule as cr
from chainrule.cli.args.documents import ChatColumns
from chainrule.cli.args.options import Argument, Reporting
from chainrule.cli.args.text import find_tokenizer
from chainrule.cli.render.progress import Progress
from chainrule.columns import Columns
from chainrule.errors import ConfigError, Setting
from chainrule.validate import Check

if TYPE_CHECKING:
    from chainrule.tasks.mask_view import MaskView, ShownConversation

TRAINED, READ, LOST = "bold green", "dim", "red"


@dataclass(frozen=True)
class Command(Reporting):
    """Show which tokens of conversations are trained in instruction tuning, why, in which row, and what is cut.

    A line for each stretch of tokens: if it is trained, the reason, and the tokens with | between them.

    Example: chainrule tune show-mask chats.jsonl --model runs/demo --limit 2
    """

    file: Annotated[str, Argument("FILE")]
    """Conversations: .jsonl, .json, .csv, .tsv or .parquet (docs/guide/instruction-tuning.md), or docstrings."""
    model: Path | None = None
    """The model to be tuned: a run, or anything that `chainrule import` takes; its tokenizer, chat template and context
    are used."""
    tokenizer: str | None = None
    """Instead of a model, a tokenizer: its file; char; or bpe, bpe:4000, unigram: learned from FILE. Default: char."""
    window: int | None = None
    """Tokens of a row. Default: the longest conversation, at most the context of the model."""
    limit: int = 3
    """Conversations to show; the packing is that of all."""
    columns: ChatColumns = field(default_factory=Columns)

    def run(self) -> None:
        from chainrule.tasks.mask_view import mask_view

        Check("show-mask", self).at_least(1, "limit", *(["window"] if self.window is not None else []))
        with Progress("reading"):
            corpus = cr.data.load_conversations(self.file, self.columns)
            tokenizer, window = self._tokenizer(corpus)
            view = mask_view(tokenizer, corpus.conversations, window, self.limit)
        if self.json:
            about = {name: value for name, value in vars(view).items() if name != "shown"}
            print(json.dumps(about | {"shown": [each.to_dict() for each in view]}, ensure_ascii=False))
            return
        for each in view:
            show(each)
        print(in_words(view))

    def _tokenizer(self, corpus: cr.data.ConversationCorpus) -> tuple[cr.text.Tokenizer, int | None]:
        """The tokenizer, and the tokens of a row if they are known."""
        if self.model is None:
            texts = cr.tasks.InstructionTask.texts(corpus, held_out=True)
            return find_tokenizer(self.tokenizer or "char", iter(texts)), self.window
        if self.tokenizer is not None:
            said = " is given with model, which has its own (leave it out)"
            raise ConfigError("show-mask: ", Setting("tokenizer"), said)
        model, tokenizer = cr.runs.load_language_model(self.model)
        if self.window is not None and self.window > model.context:
            rule = f"must be at most {model.context}, the context of the model"
            raise ConfigError.of("show-mask", {"window": self.window}, rule)
        encoded = cr.tasks.InstructionTask.of(corpus, tokenizer, eval_only=True)
        longest = int(encoded.validation.documents.lengths.max()) - 1
        return tokenizer, self.window or max(1, min(longest, model.context))


def show(conversation: ShownConversation) -> None:
    """Print a conversation; colors only repeat what the words say."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    place = (
        "in no row"
        if conversation.row is None
        else f"row {conversation.row}, from token {conversation.start}"
    )
    lines = [Text(f"conversation {conversation.number}: {place}")]
    for reason, learned, texts in conversation.runs():
        style = TRAINED if learned else LOST if reason.startswith(("cut", "dropped")) else READ
        said = "trained" if learned else "not trained"
        tokens = "|".join(text.replace("\n", "⏎") for text in texts)
        lines.append(Text(f"  {said:<12} {reason:<19} ").append(tokens, style))
    for line in lines:
        console.print(line) if console.is_terminal else print(line.plain)
    print()


def in_words(view: MaskView) -> str:
    """The packing in one line."""
    packed = f"{view.conversations:,} conversations in {view.rows:,} rows of {view.window:,} tokens"
    return f"{packed}: {view.cut:,} cut at the end of a row, {view.dropped:,} dropped; {len(view):,} shown"
