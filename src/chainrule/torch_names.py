"""What people who know PyTorch type, and what it is called here."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn

from chainrule.errors import UnknownName
from chainrule.suggest import did_you_mean

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
    "isnan": "np.isnan(x.numpy())", "isinf": "np.isinf(x.numpy())", "isfinite": "np.isfinite(x.numpy())",
    "floor": "np.floor(x.numpy())", "ceil": "np.ceil(x.numpy())", "round": "np.round(x.numpy())",
    "nonzero": "np.nonzero(x.numpy())", "median": "np.median(x.numpy())", "ravel": "x.flatten()",
    "ne": "x != y", "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y", "logical_not": "~x",
    "reciprocal": "1 / x", "type_as": "x.astype(y.dtype)", "element_size": "x.dtype.itemsize", "nelement": "x.size",
    "is_contiguous": "not needed: leave it out", "is_cuda": CPU,
    "new_zeros": "cr.zeros(...)", "new_ones": "cr.ones(...)",
    "absolute": "x.abs()", "multiply": "x * y", "divide": "x / y", "subtract": "x - y", "negative": "-x",
    **{f"{name}_": PLACE.format(name) for name in ("clip", "masked_fill", "relu", "exp", "tanh", "sigmoid", "squeeze")},
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "fill_", "normal_", "uniform_", "clamp_"), "x.data = values"),
}  # fmt: skip

LAYER_METHODS = {
    "cuda": CPU, "cpu": CPU, "float": "layer.to(np.float32)", "double": "layer.to(np.float64)",
    "modules": "layer.named_layers()", "named_modules": "layer.named_layers()", "children": "layer.named_layers()",
    "register_buffer": "a name in `buffers` of the class", "register_parameter": "an attribute that is a cr.Param",
    "add_module": "an attribute", "requires_grad_": "layer.freeze() or layer.unfreeze()",
    "half": "layer.to(np.float32)", "bfloat16": "layer.to(np.float32)", "type": "layer.to(np.float32)",
    "named_children": "layer.named_layers()", "apply": "layer.named_layers()",
    "register_forward_hook": "cr.capture()", "get_parameter": "layer.parameters()[name]",
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
    "ParameterList": "a list of cr.Param", "ModuleDict": "a dict of layers",
    "lr_scheduler": "a schedule such as cr.optim.cosine, and optimizer.step(lr)",
    "clip_grad_norm_": "cr.optim.clip_global_norm", "clip_grad_value_": "cr.optim.clip_value",
    "isnan": "np.isnan", "isinf": "np.isinf", "isfinite": "np.isfinite", "utils": "cr.optim, cr.data",
}  # fmt: skip

ARGUMENTS = {
    "dim": "axis", "dims": "axes", "keepdim": "keepdims", "unbiased": "correction", "device": CPU,
    "in_features": "n_in", "out_features": "n_out", "input_size": "n_in", "hidden_size": "n_hidden",
    "num_layers": "cr.nn.Stack of several layers", "batch_first": "always: x is (B, T, X)",
    "bidirectional": "cr.nn.Bidirectional", "num_embeddings": "n", "embedding_dim": "dim", "normalized_shape": "dim",
    "num_features": "dim", "num_channels": "dim", "num_groups": "groups", "embed_dim": "dim", "num_heads": "heads",
    "gradient": "seed", "retain_graph": "retain", "max_norm": "limit", "clip_value": "limit",
    "set_to_none": "not needed: leave it out", "strict": "always: names and shapes must match", "map_location": CPU,
    "momentum": "cr.optim.Momentum", "nesterov": "cr.optim.Momentum", "amsgrad": "not here: leave it out",
}  # fmt: skip


class Elsewhere:
    """Stands in a class for a name that people look for there; asked for, it says where to look.

    `__getattr__` could do the same, and would make every access to every attribute of a Tensor slower.
    """

    def __init__(self, name: str, meant: str) -> None:
        self.name, self.meant = name, meant

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise UnknownName(f"{owner.__name__} has no {self.name!r} (here: {self.meant})")


def unknown_member(package: str, name: str) -> AttributeError:
    """The error for a name that a room of the package lacks."""
    room = package.replace("chainrule", "cr", 1)
    error = UnknownName(f"{room} has no {name!r}", _Meant(package, name))
    error.name = name
    return error


class _Meant:
    """What was meant by a name, as a part of a message: found when it is shown, since most lookups only ask whether."""

    def __init__(self, package: str, name: str) -> None:
        self.package, self.name = package, name

    def __str__(self) -> str:
        if self.name.startswith("_"):
            return ""
        meant = MODULES.get(self.name)
        if meant is None and self.name in importlib.import_module("chainrule.ops").__all__:
            meant = f"cr.ops.{self.name}"
        if meant is not None:
            return f" (here: {meant})"
        hint = did_you_mean(self.name, getattr(sys.modules[self.package], "__all__", ()))
        return hint and f" ({hint})"
