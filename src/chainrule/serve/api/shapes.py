"""How answers in a conversation are written, whole and as events."""

from __future__ import annotations

from typing import Any

from chainrule.serve.api.choices import Choice, Delta, chat_logprobs
from chainrule.serve.models import Served


class ChatShape:
    """How answers in a conversation are written."""

    prefix, object, chunk = "chatcmpl", "chat.completion", "chat.completion.chunk"

    def __init__(self, served: Served) -> None:
        self.served = served

    def choice(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        message = {"role": "assistant", "content": delta.text, "refusal": None}
        return {"index": choice.index, "message": message} | self._end(choice, delta)

    def event(self, choice: Choice, delta: Delta) -> dict[str, Any] | None:
        content = {"content": delta.text} if delta.text else {}
        return {"index": choice.index, "delta": content} | self._end(choice, delta)

    def opening(self, choice: Choice) -> dict[str, Any]:
        begun = {"role": "assistant", "content": ""}
        return {"index": choice.index, "delta": begun, "logprobs": None, "finish_reason": None}

    def _end(self, choice: Choice, delta: Delta) -> dict[str, Any]:
        logprobs = chat_logprobs(self.served, delta.scored) if choice.scored else None
        return {"logprobs": logprobs, "finish_reason": delta.finish}
