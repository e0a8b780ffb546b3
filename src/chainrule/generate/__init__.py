"""Text from a model, one token at a time: sampling, beam search, translation, filling masks, scoring; vectors of texts.

`session` holds texts being decoded, `requests` runs many in one loop, `processors` turns logits into a token;
`engine/` runs the model with its KV cache or recurrent state.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.generate.beam import Beam, Hypothesis, beam_search, search
    from chainrule.generate.chat import answers
    from chainrule.generate.choices import answer, multiple_choice
    from chainrule.generate.documents import documents, known_fraction
    from chainrule.generate.embedding import embed, nearest
    from chainrule.generate.engine import Decoder
    from chainrule.generate.fill import Filled, Guess, fill_masks
    from chainrule.generate.processors import choose, process
    from chainrule.generate.requests import Request, run
    from chainrule.generate.sample import complete, generate, stream, write
    from chainrule.generate.sampling import Sampling
    from chainrule.generate.score import Candidate, compare, score
    from chainrule.generate.session import Session, session
    from chainrule.generate.translate import Translation, Translator, translate

__all__ = [
    "Beam", "Candidate", "Decoder", "Filled", "Guess", "Hypothesis", "Request", "Sampling", "Session", "Translation",
    "Translator", "answer", "answers", "beam_search", "choose", "compare", "complete", "documents", "embed",
    "fill_masks", "generate", "known_fraction", "multiple_choice", "nearest", "process", "run", "score", "search",
    "session", "stream", "translate", "write"
]  # fmt: skip

lazy.names(
    __name__,
    beam="Beam Hypothesis beam_search search",
    chat="answers",
    choices="answer multiple_choice",
    documents="documents known_fraction",
    embedding="embed nearest",
    engine="Decoder",
    fill="Filled Guess fill_masks",
    processors="choose process",
    requests="Request run",
    sample="complete generate stream write",
    sampling="Sampling",
    score="Candidate compare score",
    session="Session session",
    translate="Translation Translator translate",
)
