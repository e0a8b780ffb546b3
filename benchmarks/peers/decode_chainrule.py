"""Our side of decode.py: a worker that reads prompts and generates tokens."""

from __future__ import annotations

from benchmarks.harness import resident_mb
from benchmarks.peers.decode import MODELS, serve_decoder, worker_arguments


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
    decoder = cr.generate.Decoder(make(config(**MODELS[args.model])), args.weights)

    def prefill(ids):
        decoder.reset()
        return decoder.prefill([ids]).argmax(axis=1)

    serve_decoder(prefill, lambda tokens: decoder.step(tokens).argmax(axis=1), imported)


if __name__ == "__main__":
    main()
