"""A model whose weights are still in its file: what `load` reads, and what `import` converts array by array."""

from __future__ import annotations

from typing import Any, NamedTuple

from chainrule.errors import FormatError
from chainrule.io.lazy import FLOAT32, Arrays, Matrix, later
from chainrule.models import Model
from chainrule.nn.init import unfilled
from chainrule.text import Tokenizer


class Opened(NamedTuple):
    """A model of a file."""

    model: Model
    """Its parameters have shapes and no values."""
    arrays: Arrays
    """The values by our names in float32, each read or computed when it is used; they fit the model."""
    tokenizer: Tokenizer | None = None

    @classmethod
    def of(cls, kind: type[Model], config: Any, arrays: Arrays, tokenizer: Tokenizer | None = None) -> Opened:
        """A model of this class and size; arrays that do not fit it are refused."""
        model = kind.abstract(config)
        model.check_state(arrays)
        return cls(model, {name: _float32(name, array) for name, array in arrays.items()}, tokenizer)

    def load(self) -> Model:
        """The model with its values, in evaluation mode."""
        with unfilled():
            model = type(self.model)(self.model.config)
        model.load(self.arrays)
        return model.eval()


def _float32(name: str, array: Matrix) -> Matrix:
    """The array in float32; integers are refused, since without their scale they are not the weights."""
    if array.dtype.kind != "f":
        raise FormatError(
            f"{name} is of {array.dtype} (must be floats: convert quantized weights to float16)"
        )
    return array if array.dtype == FLOAT32 else later(lambda found: found.astype(FLOAT32), array)
