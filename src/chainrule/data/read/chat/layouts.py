"""The layouts of records that hold conversations, told apart by the names of their fields.

    messages                            a list of {"role": "user", "content": "..."}; also system and assistant
    conversations                       as in ShareGPT: a list of {"from": "human", "value": "..."}; also system and gpt
    instruction, input, output          as in Alpaca; input may be missing or empty
    instruction, instances              as in self-instruct: several {"input", "output"} for one instruction
    prompt, completion                  or response; the end mark that some sets write after it is left out
    question, answer

A record may have a field `system`. What is missing or empty is a DataError that names the place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from chainrule.data.read.tabular.records import Record, some
from chainrule.errors import DataError
from chainrule.text.chat.formats import ROLES
from chainrule.text.special_tokens import NAMES

PAIRS = (("instruction", "output"), ("prompt", "completion"), ("prompt", "response"), ("question", "answer"))
TALKS = ("messages", "conversations")
# By these a record is known to be meant as a conversation, or as a preference, which is refused with the right command.
ASKING = {*TALKS, "instances", "chosen", *(asks for asks, _ in PAIRS)}
FROM = {"human": "user", "gpt": "assistant"}  # roles as ShareGPT calls them
ENDS = NAMES["eos"]


class Turn(NamedTuple):
    """A message: who says it, and what."""

    role: str
    content: str


class Conversation(NamedTuple):
    """Messages of a system, a user and an assistant; it ends with an answer."""

    turns: tuple[Turn, ...]

    @classmethod
    def of(cls, question: str, answer: str, system: str = "") -> Conversation:
        """A question and its answer."""
        first = (Turn("system", system),) if system else ()
        return cls((*first, Turn("user", question), Turn("assistant", answer)))

    @property
    def messages(self) -> list[dict[str, str]]:
        """As chat formats and JSON write them."""
        return [turn._asdict() for turn in self.turns]

    @property
    def question(self) -> str:
        """What the user says first."""
        return next(turn.content for turn in self.turns if turn.role == "user")

    @property
    def answer(self) -> str:
        """What the assistant says last."""
        return self.turns[-1].content


def conversations_in(record: Record, where: str) -> Iterator[Conversation]:
    """The conversations of a record, of which several may share an instruction."""
    if name := next((name for name in TALKS if name in record), ""):
        yield _talk(record[name], f"{where}: {name!r}")
        return
    system = _text(record, "system", where, needed=False)
    if "instruction" in record and "instances" in record:
        asked = _text(record, "instruction", where)
        for number, instance in enumerate(_list(record["instances"], f"{where}: 'instances'")):
            place = f"{where}: instance {number}"
            if not isinstance(instance, Mapping):
                raise DataError(f"{place} is a {type(instance).__name__} (must have an input and an output)")
            given = _text(instance, "input", place, needed=False)
            yield Conversation.of(_with(asked, given), _answer(instance, "output", place), system)
        return
    asks, answers = fields_of(record, where)
    given = _text(record, "input", where, needed=False) if asks == "instruction" else ""
    yield Conversation.of(_with(_text(record, asks, where), given), _answer(record, answers, where), system)


def fields_of(record: Mapping[str, Any], where: str) -> tuple[str, str]:
    """The fields of the question and of its answer."""
    known = f"{', '.join(TALKS)}, " + ", ".join(" and ".join(pair) for pair in PAIRS)
    for asks, answers in PAIRS:
        if asks in record and answers in record:
            return asks, answers
    if "chosen" in record and "rejected" in record:
        rule = (
            "must have an answer to learn, such as output; preferences are learned with chainrule align dpo"
        )
        raise DataError(f"{where} holds a preference, chosen and rejected ({rule})")
    for asks, answers in PAIRS:
        if asks in record:
            names = [answer for name, answer in PAIRS if name == asks]
            raise DataError(f"{where} has {asks!r}, but no {' or '.join(map(repr, names))} (must have both)")
        if answers in record:
            raise DataError(f"{where} has {answers!r}, but no {asks!r} (must have both)")
    raise DataError(f"{where}: fields {some(record)} (must be one of: {known})")


def _talk(messages: Any, where: str) -> Conversation:
    turns = []
    for number, message in enumerate(_list(messages, where)):
        place = f"{where}, message {number}"
        role, content = role_in(message, place)
        if role == "system" and number:
            raise DataError(f"{place}: a system's message after others (must be the first)")
        read = _answer if role == "assistant" else _text
        turns.append(Turn(role, read(message, content, place)))
    roles = [turn.role for turn in turns]
    if "user" not in roles or "assistant" not in roles:
        missing = "assistant" if "user" in roles else "user"
        raise DataError(f"{where}: no message of the {missing} (must have a question and its answer)")
    if roles[-1] != "assistant":
        rule = "must be the assistant's, the answer to be learned: take the last one away"
        raise DataError(f"{where}: the last message is the {roles[-1]}'s ({rule})")
    return Conversation(tuple(turns))


def role_in(message: Any, place: str) -> tuple[str, str]:
    """The role of a message, and the name of the field with what it says."""
    shared = isinstance(message, Mapping) and "from" in message
    role = message.get("from" if shared else "role") if isinstance(message, Mapping) else None
    role = FROM.get(str(role), role) if shared else role
    if role not in ROLES:
        raise _no_role(message, place)
    return role, "value" if shared else "content"


def _no_role(message: Any, place: str) -> DataError:
    if not isinstance(message, Mapping):
        said = f"a {type(message).__name__}"
    else:
        name = "from" if "from" in message else "role"
        said = f"{name} {message.get(name)!r}"
    rule = f"must have a role of {', '.join(ROLES)} and a content, or a from of system, {', '.join(FROM)} and a value"
    return DataError(f"{place}: {said} ({rule})")


def _list(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list) or not value:
        said = "is empty" if isinstance(value, list) else f"is a {type(value).__name__}"
        raise DataError(f"{where} {said} (must be a list of at least one)")
    return value


def _text(record: Mapping[str, Any], name: str, where: str, *, needed: bool = True) -> str:
    value = record.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        said = f"has no {name!r}" if value is None else f"has a {type(value).__name__} as {name!r}"
        raise DataError(f"{where} {said} (must be a text)")
    text = value.replace("\r\n", "\n").strip()
    if needed and not text:
        raise DataError(f"{where} has an empty {name!r} (must be a text: fill it, or take the record away)")
    return text


def _answer(record: Mapping[str, Any], name: str, where: str) -> str:
    """An answer without the mark that ends it: the chat format has its own."""
    text = _text(record, name, where)
    end = next((mark for mark in ENDS if text.endswith(mark)), "")
    return _text({name: text.removesuffix(end)}, name, where)


def _with(instruction: str, given: str) -> str:
    """An instruction and what it is about."""
    return f"{instruction}\n\n{given}" if given else instruction
