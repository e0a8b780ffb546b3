"""Adapters in the files of Hugging Face's `peft`: adapter_config.json and adapter_model.safetensors.

`files` writes and reads them, `config` says which method they are of, `names` what a layer is called there; `lora`,
`prompts` and `tokens` have the arrays of each kind.
"""

from chainrule.io.peft.config import OURS, foreign_method, method_of
from chainrule.io.peft.files import from_files, to_files

__all__ = ["OURS", "foreign_method", "from_files", "method_of", "to_files"]
