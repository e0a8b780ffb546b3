"""A gated layer, a Huber loss and a training loop, as one would write them in PyTorch."""

import numpy as np

import chainrule as cr
from chainrule import nn


class Gated(nn.Module):
    def __init__(self, width: int, inside: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, inside)
        self.up = nn.Linear(width, inside)
        self.down = nn.Linear(inside, 1)

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        return self.down(self.gate(x).sigmoid() * self.up(x)).squeeze(-1)


cr.seed(0)
x = cr.randn(256, 8)
y = (x[:, 0] * x[:, 1]).abs() - x[:, 2].clip(-1, 1)
model = Gated(8, 32)
optimizer = cr.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(300):
    batch = np.random.default_rng(step).integers(0, 256, size=32)
    loss = cr.ops.huber(model(x[batch]), y[batch], delta=1.0)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.4f}")
cr.save(model, "gated.safetensors")
