"""Names that people know from PyTorch, Hugging Face, nanoGPT, litgpt, llama.cpp or scikit-learn, and what to type here.

`COMMANDS` and `OPTIONS` are the only lists of them. An entry begins with what to type instead, if there is something.
"""

from __future__ import annotations

from collections.abc import Collection


class Advice(str):
    """What to do where no flag serves, in words."""

    __slots__ = ()


CPU = Advice("everything runs on the CPU; CHAINRULE_THREADS=2 before the command sets the number of threads")
RANKS = Advice(
    "several processes train together with: mpiexec -n 4 chainrule train ... (docs/guide/cluster.md)"
)
TUNED = Advice(
    "small parts of a model learn with chainrule tune BASE DATA --method lora, adapter, prefix or prompt"
)
QUIET = Advice(
    "there is nothing to set: results go to standard output, notes to standard error; --json is for programs"
)
HELD_OUT = Advice(
    "a part of the data is held out by itself; chainrule data build --validation 0.1 says how much"
)
PLACE = Advice("it is given by its place")

# Words that are no command, by what to do.
COMMANDS = {
    "use: chainrule train FAMILY DATA": ("fit", "pretrain", "learn", "new", "init", "start"),
    "use: chainrule tune BASE DATA": ("finetune", "fine-tune", "finetuning", "transfer", "lora", "adapter", "peft"),
    "use: chainrule train FAMILY --resume RUN": ("resume", "continue"),
    "use: chainrule train gpt DATA --find-lr, or --seeds N; there is no search over settings": ("sweep", "search"),
    "use: chainrule tune BASE conversations.jsonl": ("sft", "instruct", "distill"),
    "use: chainrule align dpo BASE FILE, or align reward and align ppo": (
        "dpo", "ppo", "rlhf", "grpo", "preferences", "reward",
    ),
    "use: chainrule sample RUN --prompt TEXT": (
        "predict", "generate", "inference", "infer", "complete", "completion", "translate", "classify", "write", "run",
        "prompt", "label", "tag", "fill", "fill-mask", "main", "cli",
    ),
    "use: chainrule serve MODEL": ("server", "api", "deploy", "http", "openai"),
    "use: chainrule studio, or chainrule serve MODEL": ("web", "ui", "gui", "app"),
    "use: chainrule eval RUN": ("test", "evaluate", "evaluation", "validate", "perplexity", "score", "lm-eval"),
    "use: chainrule chat MODEL": ("talk", "converse", "ask", "interactive"),
    "use: chainrule embed MODEL FILE": ("embedding", "embeddings", "vectorize", "transform"),
    "use: chainrule import SOURCE, or chainrule export RUN": (
        "convert", "convert-hf-to-gguf", "save", "load", "hf", "gguf", "from-pretrained",
    ),
    "nothing is fetched: put the files of the model in a directory, then chainrule import DIRECTORY": (
        "pull", "models", "hub",
    ),
    "use: chainrule data get NAME for corpora; models are not fetched": ("download", "get", "fetch"),
    "use: --weights int8 with chainrule sample or chat, or chainrule export RUN --format gguf --weights q8_0": (
        "quantize", "quantise", "quant",
    ),
    "use: chainrule tokenize train, encode, decode or show": ("tokenizer", "encode", "decode", "vocab", "bpe"),
    "use: chainrule data build FILES": ("prepare", "preprocess", "build", "dataset", "datasets", "shard"),
    "use: chainrule data stats, or chainrule data dedup": ("stats", "dedup", "clean"),
    "use: chainrule runs list": ("ls", "list", "history", "logs", "log", "status"),
    "use: chainrule runs compare RUN RUN": ("compare", "diff"),
    "use: chainrule runs report RUN, or chainrule diagnose RUN --plot FILE": (
        "plot", "report", "visualize", "visualise", "tensorboard", "wandb", "draw",
    ),
    "use: chainrule diagnose RUN, or chainrule doctor": (
        "debug", "check", "inspect", "info", "env", "device", "devices", "explain", "analyze", "analyse", "gradcheck",
    ),
    "use: chainrule count FAMILY": ("params", "parameters", "summary", "size", "flops", "memory", "describe"),
    "use: chainrule train gpt DATA --budget 10m, or chainrule ladder TEXT": ("benchmark", "bench", "speed", "autotune"),
    "use: chainrule train word2vec DATA, then chainrule vectors RUN": ("word2vec", "fasttext", "glove"),
    "use: chainrule --help": ("help", "commands", "usage", "man", "--commands", "--list", "--verbose"),
    "use: chainrule --version": ("version", "-v"),
}  # fmt: skip

# Flags, without their dashes, by our flags in order of preference (the first that the command has counts), or by
# advice where there is none.
OPTIONS: dict[tuple[str, ...] | Advice, tuple[str, ...]] = {
    ("--lr",): ("learning-rate", "learningrate", "alpha", "eta", "max-lr", "base-lr", "step-size"),
    ("--epochs", "--max-steps", "--steps"): (
        "epochs", "epoch", "num-epochs", "n-epochs", "num-train-epochs", "max-epochs", "e", "steps", "iters",
        "max-iters", "num-iters", "iterations", "max-iter", "n-iter", "num-steps", "n-steps", "train-steps",
        "total-steps", "num-train-steps", "max-train-steps",
    ),
    ("--budget",): ("time", "max-time", "minutes", "hours", "time-limit", "train-time"),
    ("--batch-size",): (
        "batch", "bs", "b", "batchsize", "micro-batch-size", "per-device-train-batch-size", "train-batch-size",
        "per-device-eval-batch-size", "eval-batch-size", "global-batch-size", "minibatch", "mini-batch-size",
    ),
    ("--accumulate",): (
        "gradient-accumulation-steps", "grad-accum", "accum", "grad-accumulation", "gradient-accumulation",
        "accumulation-steps",
    ),
    ("--n-layer",): (
        "layers", "num-layers", "n-layers", "num-hidden-layers", "depth", "blocks", "n-block", "encoder-layers",
        "decoder-layers", "nlayers",
    ),
    ("--n-head",): ("heads", "num-heads", "n-heads", "num-attention-heads", "nhead", "nheads", "attention-heads"),
    ("--n-embd", "--dim", "--n-hidden"): (
        "hidden", "hidden-size", "hidden-dim", "d-model", "dim", "width", "embed-dim", "embedding-dim", "emb-dim",
        "n-embed", "model-dim", "channels", "embed-size", "vector-size",
    ),
    ("--n-embd", "--dim", "--n-hidden", "--vocab-size"): ("size",),
    ("--n-hidden",): ("ffn-dim", "intermediate-size", "d-ff", "ffn", "mlp-dim", "dim-feedforward", "feedforward"),
    ("--block-size",): (
        "context", "ctx", "ctx-size", "n-ctx", "context-length", "context-size", "seq-len", "seq-length", "max-seq-len",
        "max-seq-length", "sequence-length", "max-position-embeddings", "n-positions", "window-size", "bptt", "order",
    ),
    ("--vocab-size", "--tokenizer"): ("vocab", "vocabulary", "vocab-size", "n-vocab", "tok", "tokeniser", "encoding"),
    ("--out", "--save"): (
        "output", "output-dir", "out-dir", "output-file", "save-dir", "save", "o", "checkpoint-dir", "run-dir",
        "log-dir", "logdir", "name", "run-name", "run", "dest", "save-path", "out-file", "outfile",
    ),
    ("--init",): (
        "init-from", "from-pretrained", "pretrained", "model-name-or-path", "base-model", "finetune", "fine-tune",
        "weights-from", "load", "load-from",
    ),
    ("--resume",): ("resume-from-checkpoint", "resume-from", "continue", "restart", "from-checkpoint"),
    ("--warmup",): ("warmup-steps", "warmup-iters", "warmup-ratio", "num-warmup-steps", "lr-warmup"),
    ("--schedule",): ("scheduler", "lr-scheduler", "lr-scheduler-type", "lr-schedule", "lr-decay", "cosine"),
    ("--weight-decay",): ("wd", "l2-reg", "decay-rate"),
    ("--clip",): ("grad-clip", "max-grad-norm", "gradient-clip-val", "clip-grad", "clip-grad-norm", "clip-norm"),
    ("--eval-every",): (
        "eval-interval", "eval-steps", "eval-iters", "val-interval", "val-check-interval", "evaluation-strategy",
        "validate-every", "val-every", "eval-strategy",
    ),
    ("--save-every",): ("save-interval", "save-steps", "checkpoint-every", "ckpt-every", "save-strategy"),
    ("--keep",): ("save-total-limit", "save-best", "load-best-model-at-end", "always-save-checkpoint", "best"),
    ("--patience",): ("early-stopping", "early-stop", "early-stopping-patience"),
    ("--watch-every",): ("log-interval", "logging-steps", "log-every", "log-every-n-steps", "print-every"),
    ("--precision", "--weights"): (
        "dtype", "fp16", "bf16", "amp", "half", "mixed-precision", "float16", "fp32", "torch-dtype", "autocast",
    ),
    ("--weights",): (
        "quantize", "quant", "load-in-8bit", "load-in-4bit", "int8", "int4", "outtype", "bits", "quantization",
    ),
    ("--recompute",): ("gradient-checkpointing", "activation-checkpointing", "grad-checkpoint"),
    ("--dropout",): ("p-drop", "drop", "dropout-rate", "attention-dropout", "hidden-dropout-prob", "resid-pdrop"),
    ("--seed",): ("random-state", "random-seed", "rng", "s", "manual-seed"),
    ("--seeds",): ("trials", "repeats", "n-seeds", "num-seeds"),
    ("--config",): ("config-file", "cfg", "conf", "settings", "yaml", "params-file"),
    ("--freeze",): ("freeze-body", "freeze-backbone", "frozen", "feature-extraction"),
    ("--max-new-tokens",): (
        "max-tokens", "n-predict", "n", "length", "max-length", "num-tokens", "tokens", "n-tokens", "new-tokens",
        "max-len", "gen-length", "max-new",
    ),
    ("--num-samples",): ("num-return-sequences", "samples", "n-samples", "count", "number", "best-of"),
    ("--temperature",): ("temp", "t", "do-sample", "greedy", "creativity", "sampling"),
    ("--beam",): ("num-beams", "beams", "beam-size", "beam-width", "beam-search"),
    ("--prompt",): ("text", "start", "p", "input-text", "query", "question", "prefix", "instruction"),
    ("--prompts-file",): ("file", "f", "prompts", "prompt-file", "input-file", "stdin", "batch-file"),
    ("--stop",): ("stop-sequence", "stop-words", "reverse-prompt", "r", "eos", "until", "stop-string", "end"),
    ("--stop-tokens",): ("eos-token-id", "eos-token", "stop-token", "eos-id"),
    ("--repetition-penalty",): ("repeat-penalty", "rep-penalty"),
    ("--system",): ("sys", "system-prompt"),
    ("--logprobs",): ("scores", "probs", "output-scores", "return-logprobs"),
    ("--special",): ("skip-special-tokens", "add-special-tokens"),
    ("--format", "--kind"): ("type", "to"),
    ("--vocab",): ("tokenizer", "tokenizer-file", "tokenizer-path", "tokenizer-json"),
    ("--text-column",): ("column", "field", "text-field", "text-key", "dataset-text-field", "col"),
    ("--label-column",): ("label", "labels", "target", "label-key"),
    ("--choices",): ("task", "tasks", "multiple-choice", "benchmark", "hellaswag", "arc"),
    ("--limit",): ("max-samples", "eval-batches", "num-batches", "limit-val-batches"),
    ("--kind",): ("model-type", "algorithm", "algo", "tokenizer-type"),
    ("--order",): ("ngram", "n-gram", "ngrams"),
    CPU: (
        "device", "gpu", "gpus", "cuda", "cpu", "mps", "num-gpus", "accelerator", "devices", "n-gpu-layers", "ngl",
        "threads", "num-threads", "workers", "num-workers", "n-jobs", "jobs", "j", "dataloader-num-workers", "compile",
        "flash-attn", "flash-attention", "no-cuda",
    ),
    RANKS: ("ddp", "distributed", "nproc-per-node", "nnodes", "local-rank", "world-size", "nodes"),
    ("--shard-optimizer",): ("fsdp", "deepspeed", "zero", "zero-stage", "shard", "zero1"),
    PLACE: (
        "data", "dataset", "train-file", "train-data", "input", "i", "model", "m", "checkpoint", "ckpt", "model-path",
        "data-path", "data-dir", "dataset-name", "corpus", "source", "folder", "dir", "path", "model-dir", "train-path",
    ),
    Advice("runs are written to --out with a log; chainrule runs report RUN draws them, nothing is sent anywhere"): (
        "wandb", "tensorboard", "report-to", "wandb-project", "wandb-log", "logger", "mlflow", "push-to-hub", "hub",
    ),
    QUIET: ("verbose", "v", "verbosity", "quiet", "q", "debug", "silent", "log-level", "d", "progress", "no-color"),
    Advice("nothing is overwritten: give another --out, or remove what is there"): (
        "force", "overwrite", "overwrite-output-dir", "y", "yes", "exist-ok",
    ),
    Advice("the optimizer is AdamW; others are in Python: cr.optim"): (
        "optim", "optimizer", "optimiser", "adam", "adamw", "sgd", "momentum", "muon", "lion",
    ),
    Advice("--beta2 is an option, the first is 0.9"): ("beta1", "betas", "adam-beta1"),
    ("--validation", HELD_OUT): (
        "val-split", "validation-split", "test-size", "val-file", "validation-file", "eval-file", "eval-data",
        "val-data", "valid", "val", "eval-dataset", "test-file", "split", "valid-data",
    ),
    ("--rank", TUNED): ("lora-r", "rank", "lora-rank"),
    TUNED: ("lora", "peft", "adapter", "qlora", "use-peft"),
    Advice("nothing is fetched and no code of a model is run"): (
        "trust-remote-code", "hf-token", "revision", "cache-dir",
    ),
    Advice("text is printed as it is written"): ("stream", "streaming"),
    Advice("see chainrule serve MODEL --port 8000"): ("port", "host", "server", "listen"),
    Advice("chainrule COMMAND --help lists all options"): ("h", "help-all", "usage"),
}  # fmt: skip


def command_hint(word: str) -> str:
    """What to do instead of a command that is not there; nothing if the word is not known."""
    return next((said for said, words in COMMANDS.items() if word.lower() in words), "")


def option_hint(flag: str, known: Collection[str]) -> str:
    """What to write instead of a flag, of the flags that a command has; nothing if it is not familiar."""
    name = flag.lstrip("-").lower().replace("_", "-")
    for ours, names in OPTIONS.items():
        if name not in names:
            continue
        for each in (ours,) if isinstance(ours, Advice) else ours:
            if isinstance(each, Advice):
                return _placed(name, known) if each is PLACE else each
            if each in known:
                return f"use {each}{_remark(name, each)}"
    return ""


def _placed(name: str, known: Collection[str]) -> str:
    """Which argument was meant; nothing if the command has none."""
    if name.startswith("m") and "--init" in known:
        return "the family comes first, as in chainrule train gpt DATA; --init RUN begins with the weights of a run"
    places = [flag for flag in known if not flag.startswith("-")]
    return f"{PLACE}: {' '.join(places)}, without a name before it" if places else ""


def _remark(name: str, found: str) -> str:
    """How the values differ, where they do."""
    if found == "--max-steps" and (name == "e" or "epoch" in name):
        return ": training is planned in steps, each of --batch-size rows, or with --budget in time"
    if found == "--tokenizer":
        return " bpe:4000, or the path of a tokenizer"
    if found == "--temperature" and name in ("greedy", "do-sample", "sampling"):
        return ": 0 takes the likeliest token, above 0 it is drawn"
    return {"warmup-ratio": ": a number of steps", "minutes": " 10m", "hours": " 2h"}.get(name, "")
