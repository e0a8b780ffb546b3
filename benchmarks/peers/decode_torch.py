"""The PyTorch side of decode.py: the same shapes, random weights, a cache of its own, no gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.harness import resident_mb
from benchmarks.peers.decode import MODELS, has_bf16_instructions, serve_decoder, worker_arguments

IMPORTED = resident_mb()


class Model:
    """GPT-2 and Llama: they differ in `block`."""

    def __init__(self, name: str, dtype: torch.dtype) -> None:
        self.gpt2 = name == "gpt2"
        sizes = MODELS[name]
        self.H, self.C = sizes["n_head"], sizes["n_embd"]
        self.Hk, self.D = sizes.get("n_kv_head", self.H), self.C // self.H
        self.dtype = dtype
        T, V, kv = sizes["block_size"], sizes["vocab_size"], self.Hk * self.D
        hidden = sizes.get("n_hidden", 4 * self.C)
        self.table = self.new(V, self.C)
        self.positions = self.new(T, self.C)
        inside = hidden if self.gpt2 else 2 * hidden
        wide = [(self.C + 2 * kv, self.C), (self.C, self.C), (inside, self.C), (self.C, hidden)]
        self.layers = [[self.new(*shape) for shape in wide] for _ in range(sizes["n_layer"])]
        self.biases = [[self.new(shape[0]) if self.gpt2 else None for shape in wide] for _ in self.layers]
        self.gain, self.shift = torch.ones(self.C, dtype=dtype), torch.zeros(self.C, dtype=dtype)
        self.cache = torch.zeros(len(self.layers), 2, 1, self.Hk, T, self.D, dtype=dtype)
        angle = torch.arange(T)[:, None] * 10000.0 ** (-torch.arange(0, self.D, 2) / self.D)
        self.cos, self.sin = angle.cos().to(dtype), angle.sin().to(dtype)

    def new(self, *shape: int) -> torch.Tensor:
        return (torch.randn(*shape) * 0.02).to(self.dtype)

    def norm(self, x: torch.Tensor) -> torch.Tensor:
        if self.gpt2:
            return F.layer_norm(x, (self.C,), self.gain, self.shift)
        return F.rms_norm(x, (self.C,), self.gain, 1e-5)

    def turn(self, x: torch.Tensor, past: int) -> torch.Tensor:
        cos, sin = (table[past : past + x.shape[2]] for table in (self.cos, self.sin))
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def block(self, x: torch.Tensor, i: int, past: int) -> torch.Tensor:
        B, T, C = x.shape
        (qkv, out, inside, back), (b0, b1, b2, b3) = self.layers[i], self.biases[i]
        heads = F.linear(self.norm(x), qkv, b0).view(B, T, -1, self.D).transpose(1, 2)
        q, k, v = heads.split([self.H, self.Hk, self.Hk], 1)
        if not self.gpt2:
            q, k = self.turn(q, past), self.turn(k, past)
        keys, values = self.cache[i]
        keys[:, :, past : past + T], values[:, :, past : past + T] = k, v
        mixed = F.scaled_dot_product_attention(
            q, keys[:, :, : past + T], values[:, :, : past + T], is_causal=T > 1, enable_gqa=not self.gpt2
        )
        x = x + F.linear(mixed.transpose(1, 2).reshape(B, T, C), out, b1)
        wide = F.linear(self.norm(x), inside, b2)
        if self.gpt2:
            return x + F.linear(F.gelu(wide), back, b3)
        gate, up = wide.chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, back)

    def __call__(self, ids: torch.Tensor, past: int) -> torch.Tensor:
        x = self.table[ids]
        if self.gpt2:
            x = x + self.positions[past : past + ids.shape[1]]
        for i in range(len(self.layers)):
            x = self.block(x, i, past)
        return F.linear(self.norm(x[:, -1]), self.table)


@torch.no_grad()
def main() -> None:
    args = worker_arguments(__doc__).parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    model = Model(args.model, {"fp32": torch.float32, "bf16": torch.bfloat16}[args.weights])
    length = 0

    def prefill(ids: np.ndarray) -> Any:
        nonlocal length
        length = len(ids)
        return model(torch.tensor(ids)[None], 0).argmax(-1)

    def step(tokens: Any) -> Any:
        nonlocal length
        length += 1
        return model(tokens[:, None], length - 1).argmax(-1)

    slow = args.weights == "bf16" and not has_bf16_instructions()
    serve_decoder(prefill, step, IMPORTED, slow_bf16=slow)


if __name__ == "__main__":
    main()
