"""The PyTorch side of steps.py, as a user would write it: eager or compiled, fp32 or bf16 autocast.

That of lora.py and of dpo.py is made of it too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import resident_mb, serve_unavailable
from benchmarks.peers.steps import SIZES, serve_steps, windows, worker_arguments

IMPORTED = resident_mb()


class Block(nn.Module):
    def __init__(self, C: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(C), nn.LayerNorm(C)
        self.c_attn, self.attn_proj = nn.Linear(C, 3 * C), nn.Linear(C, C)
        self.c_fc, self.mlp_proj = nn.Linear(C, 4 * C), nn.Linear(4 * C, C)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = (
            y.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for y in self.c_attn(self.ln_1(x)).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(mixed.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, L: int, H: int, C: int, T: int, V: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        self.blocks = nn.ModuleList(Block(C, H) for _ in range(L))
        self.ln_f = nn.LayerNorm(C)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def worker(
    description: str | None,
    made: Callable[..., nn.Module] = GPT,
    batches: Callable[[str], Iterator[tuple[Tensor, ...]]] | None = None,
    *,
    lr: float = 3e-4,
    weight_decay: float = 0.1,
) -> None:
    """Serve steps of the model that is `made` of sizes, on the inputs of `batches`, for a config."""
    parser = worker_arguments(description)
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    parser.add_argument("--accumulate", type=int, default=1, help="microbatches, of as many targets each")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    L, H, C, T, _, V = SIZES[args.config]
    model = made(L, H, C, T, V)
    learned = [p for p in model.parameters() if p.requires_grad]
    matrices, vectors = ([p for p in learned if p.ndim == n] for n in (2, 1))
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=lr, betas=(0.9, 0.95), fused=True
    )
    run = torch.compile(model) if args.mode == "compiled" else model
    given = (batches or next_words)(args.config)

    def step() -> float:
        inputs = next(given)
        optimizer.zero_grad(set_to_none=True)
        half, mean = args.dtype == "bf16", 0.0
        for part in zip(*(rows.chunk(args.accumulate) for rows in inputs), strict=True):
            with torch.autocast("cpu", dtype=torch.bfloat16) if half else contextlib.nullcontext():
                loss = run(*part) / args.accumulate
            loss.backward()
            mean += loss.item()
        nn.utils.clip_grad_norm_(learned, 1.0)
        optimizer.step()
        return mean

    try:
        serve_steps(step, args.config, IMPORTED)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        serve_unavailable(f"PyTorch cannot compile here: {str(error).splitlines()[0]}")


def next_words(config: str) -> Iterator[tuple[Tensor, ...]]:
    """Windows, and what follows each token."""
    batch = windows(config)
    while True:
        ids = torch.from_numpy(batch())
        yield ids[:, :-1], ids[:, 1:]


if __name__ == "__main__":
    worker(__doc__)
