"""The bodies of requests. A field that is not listed is refused, so that nothing is quietly ignored."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chainrule.serve.api.refusals import refusal
from chainrule.serve.limits import LIMITS

Seed = Annotated[int, Field(ge=-(2**63), le=2**64 - 1)]
# A list is refused by its first bad item: others would each be described, for every form that a field may have.
Ids = Annotated[list[Annotated[int, Field(ge=0)]], Field(fail_fast=True)]
Tokens = Annotated[Ids, Field(min_length=1)]
Strings = Annotated[list[str], Field(fail_fast=True)]
TokenLists = Annotated[list[Tokens], Field(fail_fast=True)]
Objects = Annotated[list[dict[str, Any]], Field(fail_fast=True)]


class Body(BaseModel):
    """Types are taken strictly: "5" is no number."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class StreamOptions(Body):
    include_usage: bool | None = None
    include_obfuscation: bool | None = Field(None, description="Accepted; nothing is obfuscated.")


class SamplingBody(Body):
    """What completions and conversations have in common."""

    model: str | None = Field(None, description="A name of /v1/models; the first of them if it is left out.")
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    logit_bias: dict[str, Annotated[float, Field(ge=-100, le=100)]] | None = Field(
        None, max_length=LIMITS.biases, description="Token id -> what is added to its logit, -100 to 100."
    )
    n: int | None = Field(None, ge=1, le=LIMITS.choices)
    seed: Seed | None = Field(None, description="The same seed gives the same tokens, in any company.")
    stop: str | Strings | None = Field(None, description="A string or a list of strings, none of them empty.")
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, ge=0, le=1)
    user: str | None = Field(None, description="Accepted and ignored.")
    top_k: int | None = Field(
        None, ge=0, description="Ours: only so many of the likeliest tokens; 0 for all."
    )
    min_p: float | None = Field(None, ge=0, le=1, description="Ours.")
    typical: float | None = Field(None, ge=0, le=1, description="Ours.")
    repetition_penalty: float | None = Field(None, gt=0, le=1e6, description="Ours; 1 is none.")


class CompletionRequest(SamplingBody):
    prompt: str | Strings | Tokens | TokenLists | None = Field(
        None, description="A string, a list of strings, a list of token ids, or a list of such lists."
    )
    best_of: int | None = Field(None, ge=1, le=LIMITS.choices)
    echo: bool | None = None
    logprobs: int | None = Field(None, ge=0, le=LIMITS.alternatives)
    max_tokens: int | None = Field(None, ge=0)
    suffix: Literal[""] | None = Field(
        None, description="Left out or empty: no text is filled in before a suffix."
    )


class TextPart(Body):
    type: Literal["text"] = Field(description="Text: images, audio and files are not read.")
    text: str


Parts = Annotated[list[TextPart], Field(fail_fast=True)]


class MessageBody(Body):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Parts | None = Field(None, description="A string, or a list of parts of type text.")
    name: str | None = Field(None, description="Accepted and ignored.")
    refusal: None = None
    annotations: None = None
    audio: None = None
    function_call: None = None
    tool_calls: Objects | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The content, in one piece."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        return "".join(part.text for part in self.content)


Messages = Annotated[list[MessageBody], Field(fail_fast=True)]


class JsonSchema(Body):
    name: str
    description: str | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = None


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class ChatRequest(SamplingBody):
    messages: Messages = Field(min_length=1, max_length=LIMITS.messages)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=LIMITS.alternatives)
    max_tokens: int | None = Field(None, ge=0)
    max_completion_tokens: int | None = Field(None, ge=0)
    response_format: ResponseFormat | None = None
    tools: Objects | None = None
    tool_choice: str | dict[str, Any] | None = Field(None, description="Auto or none: no call can be forced.")
    parallel_tool_calls: bool | None = None
    store: bool | None = Field(None, description="Accepted; nothing is stored.")
    metadata: dict[str, str] | None = Field(None, description="Accepted and ignored.")


class EmbeddingRequest(Body):
    model: str | None = None
    input: str | Strings | Tokens | TokenLists = Field(
        description="A string, a list of strings, a list of token ids, or a list of such lists."
    )
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: int | None = Field(None, ge=1, description="Must be the width of the model, if it is given.")
    user: str | None = Field(None, description="Accepted and ignored.")


class TokenizeRequest(Body):
    model: str | None = None
    prompt: str | None = Field(
        None, description="A text, in which names of special tokens are these tokens; or give messages."
    )
    messages: Messages | None = Field(None, min_length=1, max_length=LIMITS.messages)
    add_special_tokens: bool | None = Field(
        None, description="Begin as the model's texts begin. Default: true."
    )
    add_generation_prompt: bool | None = Field(None, description="Of messages: end where the answer begins.")
    return_token_strs: bool | None = None


class DetokenizeRequest(Body):
    model: str | None = None
    tokens: Ids


B = TypeVar("B", bound=Body)


def parsed(kind: type[B], body: bytes) -> B:
    """The body of a request; what is wrong with it is said."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise refusal(kind, body, error) from None
