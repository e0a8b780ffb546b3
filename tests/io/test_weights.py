"""Weights of a model of one's own: saved and loaded, nothing but arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.cli import main


class Net(nn.Module):
    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.norm = nn.BatchNorm(3)
        self.out = nn.Linear(3, width)

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        """x (B, 3) -> (B, width)"""
        return self.out(self.norm(x))


def test_a_model_comes_back_with_its_buffers(tmp_path: Path) -> None:
    net, x = Net(), cr.randn(6, 3)
    net(x)
    cr.save(net, tmp_path / "net.safetensors")
    other = cr.load(tmp_path / "net.safetensors", Net())
    assert isinstance(other, Net) and (other.eval()(x) == net.eval()(x)).all()


def test_a_state_dict_can_be_saved(tmp_path: Path) -> None:
    net = Net()
    cr.save(net.state_dict(), tmp_path / "net.safetensors")
    assert cr.load(tmp_path / "net.safetensors", Net()).state_dict().keys() == net.state_dict().keys()


def test_weights_alone_say_what_reads_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("net.safetensors", "model.safetensors"):
        cr.save(Net(), tmp_path / name)
        with pytest.raises(cr.FormatError, match=rf"{name}: weights alone .*cr\.load\(path, model\)"):
            cr.load(tmp_path / name)
    (tmp_path / "bin.safetensors").write_bytes(b"anything else, and no weights")
    with pytest.raises(SystemExit):
        main(["import", str(tmp_path / "bin.safetensors"), "--out", str(tmp_path / "out")])
    assert "must be a safetensors file" in capsys.readouterr().err


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    cr.save(Net(), path)
    with pytest.raises(cr.ShapeError, match=r"load: out.weight has shape \(5, 3\)"):
        cr.load(path, Net(5))
    with pytest.raises(cr.CheckpointError, match="does not fit Linear"):
        cr.load(path, nn.Linear(3, 4))
    with pytest.raises(cr.ConfigError, match="must be a layer"):
        cr.save(np.ones(3), path)  # type: ignore[arg-type]
    with pytest.raises(cr.ConfigError, match=r"save\(model, 'model.safetensors'\)"):
        cr.save(Net(), Net())  # type: ignore[arg-type]
    path.write_bytes(b"not a file of weights")
    with pytest.raises(cr.FormatError):
        cr.load(path, Net())
