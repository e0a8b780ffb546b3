"""The llama.cpp side of decode.py: a worker that runs llama.cpp's own benchmarks on the same shapes.

llama-bench, and llama-batched-bench for several texts at once, are looked for in the folder $CHAINRULE_LLAMA_CPP, in
its bin/ and build/bin/, and on PATH. They come with the packages of llama.cpp, or from source:

    cmake -S llama.cpp -B llama.cpp/build -DCMAKE_BUILD_TYPE=Release
    cmake --build llama.cpp/build --target llama-bench llama-batched-bench -j
    CHAINRULE_LLAMA_CPP=llama.cpp make bench ONLY=decode

Every matrix has the format asked for, the table of tokens too: as many bits as in our decoder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import memory_mb, serve, serve_unavailable
from benchmarks.peers.decode import EIGHT, MODELS, PREFILL, TEXTS, TOKENS, worker_arguments

QUANTIZATION = {"fp32": "F32", "bf16": "BF16", "q8_0": "Q8_0", "q4_0": "Q4_0"}
ARCHITECTURES = {"gpt2": "gpt2", "llama135": "llama"}


def find_program(name: str) -> str | None:
    """A program of llama.cpp."""
    home = os.environ.get("CHAINRULE_LLAMA_CPP")
    places = [Path(home, part) for part in (".", "bin", "build/bin")] if home else []
    return shutil.which(name, path=os.pathsep.join([*map(str, places), os.environ.get("PATH", "")]))


def shapes(model: str) -> dict[str, tuple[int, ...]]:
    """Names of llama.cpp and shapes of all tensors; vectors are ones."""
    size = MODELS[model]
    C, F, T, V = (
        size["n_embd"],
        size.get("n_hidden", 4 * size["n_embd"]),
        size["block_size"],
        size["vocab_size"],
    )
    kv = C // size["n_head"] * size.get("n_kv_head", size["n_head"])
    found: dict[str, tuple[int, ...]] = {"token_embd": (V, C), "output_norm": (C,)}
    if model == "gpt2":
        found["position_embd"] = (T, C)
        layer = {"attn_qkv": (3 * C, C), "attn_output": (C, C), "ffn_up": (F, C), "ffn_down": (C, F)}
    else:
        layer = {"attn_q": (C, C), "attn_k": (kv, C), "attn_v": (kv, C), "attn_output": (C, C),
                 "ffn_gate": (F, C), "ffn_up": (F, C), "ffn_down": (C, F)}  # fmt: skip
    for i in range(size["n_layer"]):
        found |= {f"blk.{i}.{name}": shape for name, shape in layer.items()}
        found |= {f"blk.{i}.attn_norm": (C,), f"blk.{i}.ffn_norm": (C,)}
    return found


def write_gguf(model: str, weights: str, path: Path) -> None:
    """A file of random weights, without a vocabulary."""
    import gguf

    size, kind = MODELS[model], getattr(gguf.GGMLQuantizationType, QUANTIZATION[weights])
    writer = gguf.GGUFWriter(path, ARCHITECTURES[model])
    writer.add_context_length(size["block_size"])
    writer.add_embedding_length(size["n_embd"])
    writer.add_block_count(size["n_layer"])
    writer.add_feed_forward_length(size.get("n_hidden", 4 * size["n_embd"]))
    writer.add_head_count(size["n_head"])
    writer.add_head_count_kv(size.get("n_kv_head", size["n_head"]))
    writer.add_layer_norm_eps(1e-5) if model == "gpt2" else writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(size["vocab_size"])
    writer.add_string("tokenizer.ggml.model", "no_vocab")
    rng = np.random.default_rng(0)
    for name, shape in shapes(model).items():
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", np.ones(shape, np.float32))
        else:
            values = 0.02 * rng.standard_normal(shape, dtype=np.float32)
            matrix = gguf.GGMLQuantizationType.F32 if name == "position_embd" else kind
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, matrix), raw_dtype=matrix)
        if model == "gpt2" and name not in ("token_embd", "position_embd"):
            writer.add_tensor(f"{name}.bias", np.zeros(shape[0], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaBench:
    """Runs the programs and watches their memory."""

    def __init__(self, single: str, batched: str | None, model: Path, threads: int) -> None:
        self.single, self.batched = single, batched
        self.settings = ["-m", str(model), "-t", str(threads)]
        self.peak_mb = 0.0

    def __call__(self, case: str, count: int) -> list[float]:
        """Milliseconds: of a prompt, or of one token of each text as the mean over TOKENS of them."""
        context = case.split()[-1]
        if case == EIGHT:
            assert self.batched is not None
            sizes = ["-npp", context, "-ntg", str(TOKENS), "-npl", str(TEXTS), "-c", "1024"]
            runs = (self._run(self.batched, *sizes, "--output-format", "jsonl") for _ in range(count))
            return [1e3 * json.loads(run.strip().splitlines()[-1])["t_tg"] / TOKENS for run in runs]
        prompt = ["-p", context, "-n", "0"]
        work = prompt if case == PREFILL else ["-p", "0", "-n", str(TOKENS), "-d", context]
        (found,) = json.loads(self._run(self.single, "-o", "json", *work, "-r", str(count)))
        return [ns / 1e6 / (1 if case == PREFILL else TOKENS) for ns in found["samples_ns"]]

    def _run(self, program: str, *options: str) -> str:
        command = [program, *self.settings, *options]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            while process.poll() is None:
                self.peak_mb = max(self.peak_mb, memory_mb("VmHWM", process.pid))
                time.sleep(0.05)
            assert process.stdout is not None
            output = process.stdout.read()
        if process.returncode:
            raise SystemExit(f"{program}: exit code {process.returncode}: {' '.join(command)}")
        return output


def main() -> None:
    args = worker_arguments(__doc__).parse_args()
    program = find_program("llama-bench")
    if program is None:
        serve_unavailable("llama.cpp not found (set CHAINRULE_LLAMA_CPP to the folder of llama-bench)")
        return
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.gguf")
        write_gguf(args.model, args.weights, model)
        batched = find_program("llama-batched-bench")
        bench = LlamaBench(program, batched, model, args.threads)
        bench("after 8", 1)  # reads the file into memory, and fails early
        bench.peak_mb = 0.0
        serve(bench, 0.0, peak=lambda: bench.peak_mb, batched=batched is not None)


if __name__ == "__main__":
    main()
