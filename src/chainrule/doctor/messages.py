"""The words of every finding, by its code. Nothing reads them but people."""

from __future__ import annotations

from typing import NamedTuple

from chainrule.doctor.finding import Code, Finding, Level


class Message(NamedTuple):
    """The level of a finding and its sentences, with {names} for what was measured."""

    level: Level
    about: str
    measured: str
    meaning: str
    advice: str = ""


def finding(code: Code, level: Level | None = None, /, **values: object) -> Finding:
    """The finding with this code, about these values; `level` is another one than usual.

    >>> str(finding(Code.VOCABULARY_OK, size=27))
    'vocabulary: 27 tokens. Data, tokenizer and model agree.'
    """
    usual, about, *sentences = MESSAGES[code]
    return Finding(code, level or usual, about, *(text.format(**values) for text in sentences))


_TARGETS = "{empty} of {rows} rows of the first {batches} batches have no target"
_CUT = "{fraction:.1%} of the examples are longer than the context and lose their end"
_UNUSED = "{missing:,} of {size:,} tokens never occur in training"
_INITIAL_LOSS = "{loss:.3f} nats, ln {n_classes} = {expected:.3f}"
_FORECAST = "{plan}; {needed:.2g} GiB of memory of {available:.2g}"
_ONE_BATCH = "loss {first:.3f} to {last:.3f} in {steps} steps on {rows} rows{floor}"
_CURVE = "from {first:.3f} to {last:.3f} nats, ln {n_classes} = {expected:.3f}"
_LOSS = "{loss:.3f} nats; a uniform guess costs ln {n_classes} = {expected:.3f}"
_SPLITS = "training {train:.4f}, validation {validation:.4f} nats{of}"
_SPREAD = "by {factor:.2f} per layer, from {first:.3g} to {last:.3g}"
_DEPTH = "by {factor:.2f} per layer: {ratio:.2g} times at the first layer"
_UPDATES = "one step moves a matrix by {median:.1g} of its length (median of {count})"
_CONE = "mean cosine {anisotropy:.3f}, without the mean vector {centered:.3f}"
_SMALLER_STEPS = "a smaller lr than {lr:g}, a longer warmup than {warmup}"
_OVERFLOW = "Numbers grew beyond what a float holds, or something was divided by 0."

# A paragraph for each: level, subject and what was measured; what it means; what to try.
# fmt: off
MESSAGES = {
    # -- before the first step --------------------------------------------------------------------------------
    Code.TARGETS_OK: Message("ok", "targets", _TARGETS, "Every row has something to learn."),
    Code.TARGETS_CHANCE: Message("ok", "targets", _TARGETS,
        "As many as chance leaves without one: the words to guess are drawn, anew in each epoch."),
    Code.TARGETS_MISSING: Message("problem", "targets", _TARGETS + ", first row {row} of step {step}",
        "These rows cost time and teach nothing; a batch of only these rows has no loss.",
        "Leave out examples of fewer than two tokens; check what marks a target as ignored."),
    Code.LABELS_OK: Message("ok", "labels", "each of {classes} has {least} examples or more to train on",
        "All of them can be learned."),
    Code.LABELS_FEW: Message("note", "labels",
        "{few:,} of {classes:,} with fewer than {least} examples to train on: {examples}",
        "They cannot be learned, and take part in every prediction.",
        "More examples of them, or leave them out; --header if it is the name of a column."),
    Code.LENGTH_OK: Message("ok", "length", _CUT, "Nearly all of them fit."),
    Code.LENGTH_CUT: Message("note", "length", _CUT,
        "The model never learns what stands at their end, nor that they end there.",
        "A larger block_size, or shorter examples."),
    Code.VOCABULARY_OK: Message("ok", "vocabulary", "{size} tokens", "Data, tokenizer and model agree."),
    Code.VOCABULARY_ID: Message("problem", "vocabulary",
        "id {id} in the {name}, the model has {size:,} tokens",
        "Data and model were made with different tokenizers.",
        "Encode the data again with this tokenizer."),
    Code.VOCABULARY_SIZE: Message("problem", "vocabulary",
        "the tokenizer has {tokenizer:,} tokens, the model {model:,}",
        "Some tokens have no embedding, or some embeddings no token.",
        "Make the model with the tokenizer's vocab_size."),
    Code.STOP_TOKEN_OK: Message("ok", "stop token", "{name} occurs {count:,} times and is a target",
        "The model learns to stop."),
    Code.STOP_TOKEN_MISSING: Message("note", "stop token", "{name} never occurs in {total:,} training tokens",
        "The model never learns to stop: it writes until the limit of tokens.",
        "Put it after every document (data build --end)."),
    Code.STOP_TOKEN_IGNORED: Message("problem", "stop token",
        "{name} occurs {count:,} times, but is never a target",
        "The model reads it and never learns to write it: it will not stop.",
        "Let the token that ends a text be a target."),
    Code.UNUSED_TOKENS_OK: Message("ok", "unused tokens", _UNUSED, "The vocabulary fits the text."),
    Code.UNUSED_TOKENS: Message("note", "unused tokens", _UNUSED + " ({fraction:.0%}), such as {examples}",
        "Their embeddings are never trained, and each takes part in every prediction.",
        "Train a tokenizer on this text (chainrule tokenize train), with a smaller vocabulary."),
    Code.INITIAL_LOSS_OK: Message("ok", "initial loss", _INITIAL_LOSS,
        "About the loss of a uniform guess, as it should be."),
    Code.INITIAL_LOSS_NOT_FINITE: Message("problem", "initial loss", _INITIAL_LOSS,
        "The forward pass overflows.",
        "Initialize with smaller weights."),
    Code.INITIAL_LOSS_HIGH: Message("problem", "initial loss", _INITIAL_LOSS,
        "The untrained model prefers some tokens for no reason; the first steps only unlearn that. "
        "Logits with a spread of {spread} explain it.",
        "Initialize the last layer with small weights (std 0.02, or 0.01/√fan_in) and a bias of 0."),
    Code.INITIAL_LOSS_LOW: Message("problem", "initial loss", _INITIAL_LOSS,
        "An untrained model cannot know this much: it has been trained, or its input contains the target.",
        "Check that targets are the inputs shifted by one and that attention is causal."),
    Code.FORECAST: Message("ok", "forecast", _FORECAST, "Measured on the first batch."),
    Code.FORECAST_MEMORY: Message("problem", "forecast", _FORECAST,
        "Other programs are pushed out of memory, and the system may end the training.",
        "More microbatches per batch (accumulate), recompute, a smaller batch or model."),
    Code.ONE_BATCH_OK: Message("ok", "one batch", _ONE_BATCH,
        "The model can overfit it: data, loss and gradient belong together."),
    Code.ONE_BATCH_FAILS: Message("problem", "one batch", _ONE_BATCH,
        "The model cannot even overfit these rows.",
        "Check that targets belong to their inputs; look for layers without gradient (chainrule diagnose); "
        "another lr than {lr:g} (--find-lr); a wider model."),
    # -- while it trains --------------------------------------------------------------------------------------
    Code.LOSS_SPIKE: Message("problem", "loss spike",
        "loss {loss:.3f}, {z:.1f} standard deviations above the {mean:.3f} of the last {steps} steps",
        "One step was too large, or this batch is unlike the others.",
        "If it comes back: " + _SMALLER_STEPS + ", a lower clip than {clip:g}; else look at the data."),
    Code.CLIPPING: Message("note", "clipping",
        "every gradient of the last {steps} steps was longer than {factor:g} times clip {clip:g}, now {norm:.3g}",
        "Clipping is for the rare large gradient; now it sets the length of every step.",
        "Raise clip above {norm:.2g}, or take a smaller lr."),
    Code.OVERFITTING: Message("problem", "overfitting",
        "validation {last:.3f} after {lowest:.3f} at step {step}, while training fell from {then:.3f} to {now:.3f}",
        "The model overfits{since}: what it still learns of the training text does not hold for other text.",
        "Stop at the best step (patience {patience}) or take more text; a smaller model, dropout, weight_decay or l2 "
        "may help."),
    Code.CURVE_OK: Message("ok", "loss curve", _CURVE, "It starts where it should and falls."),
    Code.CURVE_NOT_FINITE: Message("problem", "loss curve", "the loss of step {step} is {loss}",
        "Training broke down.",
        "Take a smaller learning rate, a longer warmup, or clip the gradient."),
    Code.CURVE_DIVERGES: Message("problem", "loss curve", _CURVE,
        "It had been down to {lowest:.3f} and rose again.",
        "Take a smaller learning rate."),
    Code.CURVE_HOCKEY_STICK: Message("problem", "loss curve", _CURVE,
        "A hockey stick: the first {steps_to_uniform} steps only shrink the logits to those of a uniform guess.",
        "Initialize the last layer with small weights; the curve then starts at ln V."),
    Code.CURVE_FLAT: Message("problem", "loss curve", _CURVE,
        "It does not learn.",
        "Raise the learning rate; look for layers without gradient."),
    Code.CURVE_RISES: Message("problem", "loss curve", _CURVE,
        "It had been down to {lowest:.3f} and ends no lower than it began.",
        "Train for longer, in case that is chance; otherwise take a smaller learning rate."),
    # -- a number that is not finite --------------------------------------------------------------------------
    Code.NOT_FINITE_WEIGHT: Message("problem", "not finite",
        "{weight} is {value}{token}; it is first met in {name}{where}",
        "The weights were broken before this step.",
        "start from finite weights, {smaller}"),
    Code.NOT_FINITE_FORWARD: Message("problem", "not finite",
        "{name} is the first op that makes {value} of finite numbers{where}",
        _OVERFLOW,
        "{smaller}"),
    Code.NOT_FINITE_BACKWARD: Message("problem", "not finite",
        "the loss is finite; of the gradients, that of {name} is the first with {value}{where}",
        _OVERFLOW,
        "{smaller}"),
    Code.NOT_FINITE_GRADIENT: Message("problem", "not finite",
        "the loss is finite; the gradient of {name} has {value} at {index}{where}",
        _OVERFLOW,
        "{smaller}"),
    Code.NOT_FINITE_SUM: Message("problem", "not finite",
        "every number of the batch is finite when recomputed",
        "The sum of the losses or of the squared gradients is too large. Or dropout drew others, as for an embedder on "
        "several ranks.",
        "{smaller}"),
    Code.NOT_FINITE_UPDATE: Message("problem", "not finite", "{validation}{weight} after step {step}",
        "The update itself took the weights where nothing can be computed.",
        "a smaller lr than {lr:g}, a smaller weight_decay than {weight_decay:g}"),
    # -- a model ----------------------------------------------------------------------------------------------
    Code.LOSS_OK: Message("ok", "loss", _LOSS, "It has learned something."),
    Code.LOSS_HIGH: Message("problem", "loss", _LOSS,
        "After training it is still no better than guessing.",
        "Take a smaller learning rate; check that the data is the data it was trained on."),
    Code.SPLITS_OK: Message("ok", "splits", _SPLITS,
        "What it knows holds for text it has not seen; a larger model could learn more."),
    Code.SPLITS_LEARNING: Message("ok", "splits", _SPLITS,
        "What it knows holds for text it has not seen, and its loss still falls: more steps could learn more."),
    Code.SPLITS_APART: Message("ok", "splits", _SPLITS,
        "It knows the training text better, and still gets better on the other."),
    Code.SPLITS_LEVEL: Message("ok", "splits", _SPLITS,
        "It knows the training text better, and on the other it no longer gets better."),
    Code.SPLITS_OVERFIT: Message("note", "splits", _SPLITS,
        "It overfits: it knows the training data better than any other, and validation has been better.",
        "More text, a smaller model, dropout, or stop at the best step (patience)."),
    Code.WEIGHTS_OK: Message("ok", "weights", "all {count:,} are finite", "The checkpoint can be used."),
    Code.WEIGHTS_NOT_FINITE: Message("problem", "weights", "{weight} is {value}",
        "The model is broken.",
        "Continue from an earlier checkpoint."),
    Code.ACTIVATIONS_NOT_FINITE: Message("problem", "activations",
        "{name} is the first of {layers} with values that are not finite",
        "The forward pass overflows there.",
        "Initialize the layers before it with smaller weights, or normalize its input."),
    Code.SATURATED: Message("problem", "saturation",
        "{fraction:.0%} of {name} is saturated ({layers} over {limit:.0%})",
        "Their inputs are too large: these entries pass less than a fiftieth of the gradient, and the weights "
        "before them hardly learn.",
        "Initialize with smaller weights (gain/√fan_in), or normalize before the activation."),
    Code.SILENT: Message("problem", "saturation",
        "{fraction:.0%} of {name} is silent ({layers} over {limit:.0%})",
        "Their inputs are nearly all negative: these entries pass less than a fiftieth of the gradient, and the "
        "weights before them hardly learn.",
        "Initialize biases with 0 and weights with gain/√fan_in, or normalize before the activation."),
    Code.DEAD_UNITS: Message("problem", "dead units",
        "{dead} of {units} units of {name} ({layers} with some)",
        "None of {examples:,} examples moves them, so their weights do not learn. A larger sample may find one.",
        "Initialize with smaller weights and biases of 0; take a smaller learning rate if they died in training."),
    Code.SPREAD_SHRINKS: Message("problem", "spread", "the spread of {op} shrinks " + _SPREAD,
        "The weights are too small for this activation; with more layers the signal is lost.",
        "Initialize weights with gain/√fan_in (nn.init.kaiming_normal), or normalize between layers."),
    Code.SPREAD_GROWS: Message("problem", "spread", "the spread of {op} grows " + _SPREAD,
        "The weights are too large for this activation; with more layers the signal is lost.",
        "Initialize weights with gain/√fan_in (nn.init.kaiming_normal), or normalize between layers."),
    Code.GRADIENTS_VANISH: Message("problem", "gradients", "at {op} they vanish " + _DEPTH,
        "Early layers hardly learn.",
        "{cure}."),
    Code.GRADIENTS_EXPLODE: Message("problem", "gradients", "at {op} they explode " + _DEPTH,
        "The updates of early layers are far too large.",
        "{cure}."),
    Code.GRADIENT_NOT_FINITE: Message("problem", "gradients", "{names}: the gradient is not finite",
        "A step with it would destroy the model.",
        "Take a smaller learning rate; look for overflow in the forward pass."),
    Code.GRADIENT_ZERO: Message("problem", "gradients", "{names}: the gradient is 0",
        "They do not take part in the loss, or what follows them is zero or dead.",
        "Check that the forward pass uses them and that not all weights start at 0."),
    Code.UPDATES_OK: Message("ok", "updates", _UPDATES, "Fast enough to learn, slow enough to keep it."),
    Code.UPDATES_LARGE: Message("problem", "updates", _UPDATES,
        "Beyond {limit:g} for {names}: ten such steps replace all it has learned.",
        "Take a smaller learning rate, or a longer warmup."),
    Code.UPDATES_SMALL: Message("note", "updates", _UPDATES,
        "Below {limit:g} for {names}: a thousand steps change a hundredth of it.",
        "Take a larger learning rate, unless it is warming up or cooling down."),
    Code.EMBEDDINGS_OK: Message("ok", "embeddings", _CONE, "The vectors use all directions."),
    Code.EMBEDDINGS_CONE: Message("note", "embeddings", _CONE,
        "The vectors lie in a narrow cone: unrelated tokens look alike.",
        "Subtract the mean before comparing by cosine."),
}
