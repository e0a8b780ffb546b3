"""The bodies of responses, for the OpenAPI document; tests hold every response against them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorDetail(Answer):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorResponse(Answer):
    error: ErrorDetail


class PromptDetails(Answer):
    cached_tokens: int


class Usage(Answer):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class Logprobs(Answer):
    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]


class CompletionChoice(Answer):
    index: int
    text: str
    logprobs: Logprobs | None
    finish_reason: Literal["stop", "length"] | None


class CompletionResponse(Answer):
    """Also each event of a stream."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: Usage | None = None


class TopLogprob(Answer):
    token: str
    logprob: float
    bytes: list[int] | None


class ChatLogprob(TopLogprob):
    top_logprobs: list[TopLogprob]


class ChatLogprobs(Answer):
    content: list[ChatLogprob]
    refusal: None


class FunctionCall(Answer):
    name: str
    arguments: str


class ToolCall(Answer):
    id: str
    type: Literal["function"]
    function: FunctionCall


class ToolCallDelta(ToolCall):
    index: int


class ChatMessage(Answer):
    role: Literal["assistant"]
    content: str | None
    refusal: None
    tool_calls: list[ToolCall] | None = None


class ChatChoice(Answer):
    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls"]


class ChatResponse(Answer):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoice]
    usage: Usage


class ChatDelta(Answer):
    role: Literal["assistant"] | None = None
    content: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class ChatChunkChoice(Answer):
    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls"] | None


class ChatChunk(Answer):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = None


class Embedding(Answer):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingUsage(Answer):
    prompt_tokens: int
    total_tokens: int


class EmbeddingResponse(Answer):
    object: Literal["list"]
    model: str
    data: list[Embedding]
    usage: EmbeddingUsage


class ModelCard(Answer):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int | None
    vocab_size: int
    writes: bool
    chat_template: bool


class ModelList(Answer):
    object: Literal["list"]
    data: list[ModelCard]


class TokenizeResponse(Answer):
    tokens: list[int]
    count: int
    max_model_len: int | None
    token_strs: list[str] | None


class DetokenizeResponse(Answer):
    prompt: str


class TokenizerInfo(Answer):
    tokenizer_class: str
    vocab_size: int
    add_bos_token: bool
    bos_token: str | None
    eos_token: str | None
    pad_token: str | None
    unk_token: str | None
    special_tokens: dict[str, int]
    chat_template: str | None
    model_max_length: int | None


class Health(Answer):
    status: Literal["ok"]


SCHEMAS: tuple[Any, ...] = (
    ErrorResponse, CompletionResponse, ChatResponse, ChatChunk, EmbeddingResponse, ModelCard, ModelList,
    TokenizeResponse, DetokenizeResponse, TokenizerInfo, Health,
)  # fmt: skip
