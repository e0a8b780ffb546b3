"""Our side of decode.py: a worker that reads prompts and generates tokens."""

from __future__ import annotations

from benchmarks.harness import resident_mb
from benchmarks.peers.decode import MODELS, TEXTS, serve_decoder, worker_arguments


def main() -> None:
    args = worker_arguments(__doc__).parse_args()
    import chainrule as cr

    make, config = {
        "gpt2": (cr.models.GPT, cr.models.GPTConfig),
        "llama135": (cr.models.Llama, cr.models.LlamaConfig),
    }[args.model]
    imported = resident_mb()
    cr.set_threads(args.threads)
    cr.seed(0)
    decoder = cr.generate.Decoder(make(config(**MODELS[args.model])), args.weights, batch=TEXTS)

    def prefill(ids, texts=1):
        decoder.reset()
        return decoder.prefill([ids] * texts, range(texts)).argmax(axis=1)

    def step(tokens):
        return decoder.step(tokens, range(len(tokens))).argmax(axis=1)

    serve_decoder(prefill, step, imported, lambda ids: prefill(ids, TEXTS))


if __name__ == "__main__":
    main()
