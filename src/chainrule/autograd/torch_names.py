"""What people who know PyTorch type, and what it is called here."""

from __future__ import annotations

import importlib
from typing import NoReturn

from chainrule.errors import UnknownName

CPU = "everything runs on the CPU: leave it out"
CAST = "x.astype(np.float32)"
PLACE = "nothing is changed in place: x = x.{0}(...), or assign to x.data of a leaf"

METHODS = {
    "view": "x.reshape(...)", "view_as": "x.reshape(y.shape)", "clamp": "x.clip(min, max)", "numel": "x.size",
    "dim": "x.ndim", "cuda": CPU, "cpu": CPU, "device": CPU, "to": f"{CAST}; {CPU}", "type": CAST, "float": CAST,
    "double": "x.astype(np.float64)", "half": CAST, "long": "x.astype(np.int64)", "int": "x.astype(np.int32)",
    "bool": "x.astype(bool)", "contiguous": "not needed: leave it out", "requires_grad_": "x.requires_grad = True",
    "mm": "x @ y", "bmm": "x @ y", "t": "x.T", "mT": "x.swapaxes(-1, -2)", "unbind": "tuple(x)",
    "grad_fn": "x.record", "is_leaf": "x.record is None", "square": "x * x", "pow": "x ** p",
    "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "index_select": "x[ids]", "detach_": "x.detach()",
    "broadcast_to": "x.expand(...)", "eq": "x == y", "copy_": "x.data = values", "zero_": "x.data = 0 * x.data",
    "gather": "cr.ops.take_along_axis(x, ids=ids, axis=axis)", "amax": "x.max(axis)", "amin": "x.min(axis)",
    **{f"{name}_": PLACE.format(name) for name in ("clip", "masked_fill", "relu", "exp", "tanh", "sigmoid", "squeeze")},
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "fill_", "normal_", "uniform_", "clamp_"), "x.data = values"),
}  # fmt: skip

LAYER_METHODS = {
    "cuda": CPU, "cpu": CPU, "float": "layer.to(np.float32)", "double": "layer.to(np.float64)",
    "modules": "layer.named_layers()", "named_modules": "layer.named_layers()", "children": "layer.named_layers()",
    "register_buffer": "a name in `buffers` of the class", "register_parameter": "an attribute that is a cr.Param",
    "add_module": "an attribute", "requires_grad_": "layer.freeze() or layer.unfreeze()",
}  # fmt: skip

MODULES = {
    "tensor": "cr.Tensor", "as_tensor": "cr.Tensor", "from_numpy": "cr.Tensor", "manual_seed": "cr.seed",
    "float32": "np.float32", "float64": "np.float64", "cuda": CPU, "device": CPU, "cat": "cr.ops.concat",
    "Module": "cr.nn.Module", "Parameter": "cr.Param", "functional": "cr.ops", "clamp": "cr.ops.clip",
    "gather": "cr.ops.take_along_axis", "bmm": "cr.ops.matmul", "mm": "cr.ops.matmul", "view": "cr.ops.reshape",
    "permute": "cr.ops.transpose", "expand": "cr.ops.broadcast_to", "layer_norm": "cr.ops.layernorm",
    "rms_norm": "cr.ops.rmsnorm", "batch_norm": "cr.ops.batchnorm", "smooth_l1_loss": "cr.ops.huber",
    "huber_loss": "cr.ops.huber", "mse_loss": "cr.ops.mse", "l1_loss": "cr.ops.mae",
    "MSELoss": "cr.ops.mse", "L1Loss": "cr.ops.mae", "HuberLoss": "cr.ops.huber", "SmoothL1Loss": "cr.ops.huber",
    "CrossEntropyLoss": "cr.ops.cross_entropy", "BCEWithLogitsLoss": "cr.ops.binary_cross_entropy_with_logits",
    "scaled_dot_product_attention": "cr.ops.attention", "MultiheadAttention": "cr.nn.MultiHeadAttention",
    "ReLU": "cr.ops.relu", "GELU": "cr.ops.gelu", "SiLU": "cr.ops.silu", "Tanh": "cr.ops.tanh",
    "Sigmoid": "cr.ops.sigmoid", "Softmax": "cr.ops.softmax", "BatchNorm1d": "cr.nn.BatchNorm",
    "ParameterList": "a list of cr.Param", "ModuleDict": "a dict of layers", "lr_scheduler": "cr.optim schedules",
    "clip_grad_norm_": "cr.optim.clip_global_norm", "clip_grad_value_": "cr.optim.clip_value",
}  # fmt: skip


class Elsewhere:
    """Stands in a class for a name that people look for there; asked for, it says where to look.

    `__getattr__` could do the same, and would make every access to every attribute of a Tensor slower.
    """

    def __init__(self, name: str, meant: str) -> None:
        self.name, self.meant = name, meant

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise UnknownName(f"{owner.__name__} has no {self.name!r} (here: {self.meant})")


def unknown_member(module: str, name: str) -> AttributeError:
    """The error for a name that a room of the package lacks."""
    meant = None if name.startswith("__") else MODULES.get(name)
    if meant is None and name in importlib.import_module("chainrule.ops").__all__:
        meant = f"cr.ops.{name}"
    error = UnknownName(f"{module} has no {name!r}{f' (here: {meant})' if meant else ''}")
    error.name = name
    return error
