"""Asks a server with litellm and with lm_eval, and compares their answers with the library's own.

    python -m benchmarks.serving.clients

The two are installed into build/clients, once; then it takes a minute. Exit code 1 if an answer differs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, command_line, progress
from benchmarks.serving.process import Serving, make_model, serving

ENVIRONMENT = ROOT / "build" / "clients"
PACKAGES = ("litellm>=1.80", "lm_eval[api]>=0.4.9")
HERE = Path(__file__).parent
WORDS = ("red", "green", "blue", "black")


def questions(count: int) -> list[dict[str, Any]]:
    """A task of multiple choice: what is random is only which answer counts as right."""
    return [
        {"question": f"Item {i}: its color is", "choices": list(WORDS), "answer": 7 * i % 4}
        for i in range(count)
    ]


def own_scores(model: Path, documents: list[dict[str, Any]]) -> list[list[float]]:
    """ln P of each answer by the library, summed as lm_eval sums it."""
    import chainrule as cr
    from chainrule.ops import log_softmax

    loaded, tokenizer = cr.load(model)
    decoder, found = cr.generate.Decoder(loaded), []  # type: ignore[arg-type]
    for document in documents:
        begin = len(tokenizer.encode(document["question"]))
        scores = []
        for choice in document["choices"]:
            ids = tokenizer.encode(f"{document['question']} {choice}")
            decoder.reset()
            logs = log_softmax(decoder.prefill([ids], every=True))[np.arange(len(ids) - 1), ids[1:]]
            scores.append(sum(map(float, logs[begin - 1 :])))
        found.append(scores)
    return found


def run(client: str, *arguments: object) -> Any:
    """What a client prints, as JSON, in its own environment."""
    command = [ENVIRONMENT / "bin" / "python", HERE / f"{client}_client.py", *arguments]
    found = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True)
    if found.returncode:
        raise SystemExit(f"{client}: exit code {found.returncode}")
    return json.loads(found.stdout.splitlines()[-1])


def with_litellm(server: Serving) -> list[str]:
    found = run("litellm", f"http://127.0.0.1:{server.port}/v1")
    return [f"litellm: {name} is {value!r} (must be {found['expected'][name]!r})"
            for name, value in found["found"].items() if value != found["expected"][name]]  # fmt: skip


def with_lm_eval(server: Serving, model: Path, folder: Path) -> list[str]:
    documents = questions(10)
    (folder / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    found = run("lm_eval", f"http://127.0.0.1:{server.port}/v1/completions", folder)
    own = own_scores(model, documents)
    accuracy = np.mean([np.argmax(s) == d["answer"] for s, d in zip(own, documents, strict=True)])
    wrong = [f"lm_eval: {a} and {b}" for a, b in zip(found["scores"], own, strict=True) if a != b]
    if found["accuracy"] != accuracy:
        wrong.append(f"lm_eval: accuracy {found['accuracy']} (must be {accuracy})")
    progress(f"lm_eval: {sum(map(len, own))} sums of log-probabilities, accuracy {accuracy}")
    return wrong


def main() -> None:
    command_line(__doc__).parse_args()
    if not (ENVIRONMENT / "installed").exists():
        progress(f"installing {' '.join(PACKAGES)}")
        venv.create(ENVIRONMENT, with_pip=True)
        subprocess.run([ENVIRONMENT / "bin" / "pip", "install", "-qq", *PACKAGES], check=True)
        (ENVIRONMENT / "installed").touch()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_model("small", folder / "model")
        with serving(model) as server:
            progress("litellm")
            wrong = with_litellm(server)
            progress("lm_eval")
            wrong += with_lm_eval(server, model, folder)
    print("\n".join(wrong) or "litellm and lm_eval agree with the library")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
