"""Every number at which a measurement becomes a finding, with its reason. There are no others."""

from __future__ import annotations

# -- losses --

INITIAL_LOSS = 0.05
"""Fraction of ln V above ln V. Logits of spread s cost about s²/2 nats: at V = 27 this allows s = 0.57. A head with
std 0.02 gives s = 0.24 at width 128 and 0.55 at width 768."""

UNTRAINED = 0.15
"""Fraction of ln V below ln V. A head tied to the embedding favors the token just read, which pays off where text
repeats itself: 4% on indented prose. More than 15% is knowledge."""

HOCKEY_STICK = 2.0
"""Nats above ln V at the first step: logits of spread 2, eight times what a head with std 0.02 gives at width 128.
Steps that bring the loss down to ln V only shrink the logits."""

DIVERGED = 0.5
"""Nats by which a smoothed loss may end above its lowest value. A choice: well beyond the noise of small batches."""

FLAT_CURVE = 0.02
"""Fraction of the first loss: a curve that falls less than this has not even learned how frequent the tokens are."""

OVERFITTED = 0.1
"""Fraction of the training loss by which validation may lie above it. A choice, and the weakest number here: parts of
one text can differ by more (20% within the validation part of pydoc), so batches must come from all over it."""

UNDERFIT_GAP, OVERFIT_GAP = 0.01, 0.1
"""Fractions of the validation loss by which training may lie below it: up to the first a model underfits, above the
second it overfits."""

SPIKE = 6.0
"""Standard deviations above the mean of the last losses, and of their roots. Losses of single batches have heavier
tails than a normal distribution: 4 happens in any long run, 6 does not. A nearly certain classifier has heavier
ones yet: a few wrong labels are most of its loss. Such a count varies by its root; the root, by a constant."""

SPIKE_WINDOW = 100
"""Steps whose losses a spike is compared with; at least a third of them must have been made."""

SPIKE_SPREAD = 0.02
"""Nats: the least standard deviation that is believed. A loss near 0 hardly varies, and its spikes do no harm."""

SPIKE_ROOT_SPREAD = 0.01
"""And of the roots: where the loss is 1, the same."""

RISING = 3
"""Evaluations in a row above the best one that make a rise: two can be noise of the training."""

RISEN = 0.03
"""Fraction of the best validation loss by which the last one must lie above it. The lowest of many is low by chance as
well: validation losses of a few hundred texts with two labels wander by 1 to 3% once they are level."""

FALLING = 0.01
"""Fraction by which the mean loss of the last quarter of the steps lies below that of the quarter before it: more steps
would learn more. Means of so many steps vary by less."""

CLIPPED = 200
"""Steps in a row that are clipped by far: every step then has the same length, whatever the norm."""

CLIPPED_BY = 10.0
"""Times clip that a gradient is longer, to be clipped by far. Small models and early steps have norms of a few times
the default of 1, and Adam divides a common factor out."""

# -- data --

EXAMPLES = 2
"""Of a label, to train on: what one example has in common with the others of its label is not to be seen."""

UNUSED = 0.3
"""Fraction of the vocabulary that never occurs. Tokens that were merged into longer ones are often left unused: a
quarter of a WordPiece vocabulary of 4,000. Beyond that the tokenizer was made for another text."""

EMPTY = 0.05
"""Fraction of rows without a target, beyond those that chance leaves without one."""

CHANCE = 4.0
"""Standard errors by which a fraction may be above the one that is expected: by chance one in 30,000 is."""

CUT = 0.05
"""Fraction of documents that lose their end. A choice: one in twenty teaches the model not to end."""

MEMORY = 0.8
"""Fraction of the machine's memory: beyond it other programs are pushed out, and training waits for the disk."""

OVERFIT_BATCH = 0.05
"""Fraction of the first loss that may be left on a single batch, above the entropy of its contexts."""

# -- activations --

SATURATED_FRACTION = 0.3
"""Of a squashing layer's entries. Inputs of spread 1 saturate 0.8% of them, of spread 3 already 38%."""

SILENT_FRACTION = 0.9
"""Of a rectifying layer's entries. Inputs centered on 0 silence half of a ReLU layer; nine tenths mean a shift."""

DEAD_FRACTION = 0.1
"""Of a new layer's units. A few dead units cost a little width; a tenth of them has a cause."""

DEAD_TRAINED = 0.5
"""Of the units of a layer that has been trained, on the examples of one batch: ReLU units learn to be rarely on."""

SPREAD = (0.9, 1.25)
"""Factor per layer on the spread of activations, at initialization. 0.9 over ten layers leaves a third; tanh
without its gain does 0.86, with it 1.0. Growth is less harmful, and ReLU layers vary more."""

DEPTH = 3
"""Layers of one kind that make a trend with depth."""

# -- gradients --

GRADIENT = (0.8, 1.25)
"""Factor per layer on the gradient, from the last layer back: over ten layers a tenth or ten times."""

GRADIENT_RANGE = 10.0
"""And this factor between first and last layer: a short stack may vary without harm."""

UPDATE_RATIO = (1e-5, 1e-1)
"""Length of one update over the length of its weights. About 1e-3 is usual. Below 1e-5 a thousand steps change
less than a hundredth of a matrix; at 1e-1 ten steps replace it."""

# -- embeddings --

ANISOTROPIC = 0.2
"""Mean cosine between tokens. Random directions in d dimensions have 0 ± 1/√d over single pairs."""
