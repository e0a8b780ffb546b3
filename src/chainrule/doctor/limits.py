"""Every number at which a measurement becomes a finding, with its reason. There are no others."""

from __future__ import annotations

# -- losses --

INITIAL_LOSS = 0.05
"""Share of ln V above it. Logits of spread s cost about s²/2 nats: at V = 27 this allows s = 0.57. A head with std 0.02
gives s = 0.24 at width 128 and 0.55 at width 768."""

UNTRAINED = 0.15
"""Share of ln V below it. A head that shares the embedding's matrix favours the token just read, which pays off where
text repeats itself: 4% on indented prose. More than 15% is knowledge."""

SQUASHED = 2.0
"""Nats above ln V at the first step that make a loss curve a hockey stick: spread s = 2 in the logits, eight times
what a head with std 0.02 gives at width 128. Steps that bring the loss down to ln V only shrink the logits."""

DIVERGED = 0.5
"""Nats by which a smoothed loss may end above its lowest value. A choice: well beyond the noise of small batches."""

FLAT_CURVE = 0.02
"""Share of the first loss: a curve that falls less than this has not learnt even how frequent the tokens are."""

OVERFITTED = 0.1
"""Share of the training loss by which validation may lie above it. A choice, and the weakest number here: parts of one
text can differ by more (20% within the validation part of pydoc), so batches must come from all over it."""

SPIKE = 6.0
"""Standard deviations above the mean of the last losses. Losses of single batches have heavier tails than a normal
distribution: 4 happens in any long run, 6 does not."""

SPIKE_WINDOW = 100
"""Steps whose losses a spike is compared with; at least a third of them must be there."""

SPIKE_SPREAD = 0.02
"""Nats: the least standard deviation that is believed. A loss near 0 varies by next to nothing, and harms nobody."""

RISING = 3
"""Evaluations in a row above the best one that make a rise: two can be noise of the training."""

RISEN = 0.01
"""Share of the best validation loss by which the last one must lie above it."""

CLIPPED = 200
"""Steps in a row that are clipped: every step has the same length then, and the norm no longer says a thing."""

# -- data --

UNUSED = 0.3
"""Share of the vocabulary that never occurs. Tokens from which longer ones were made are often left without a use: a
quarter of a WordPiece vocabulary of 4,000. Beyond that the tokenizer was made for another text."""

EMPTY = 0.05
"""Share of rows without a target. Of masked text a short row may have none by chance."""

CUT = 0.05
"""Share of documents that lose their end. A choice: the model learns how one in twenty does not end."""

MEMORY = 0.8
"""Share of the machine's memory: beyond it other programs are pushed out, and training waits for the disk."""

MEMORISED = 0.05
"""Share of the first loss that may be left on a single batch, above what its contexts leave open."""

# -- activations --

SATURATED = 0.99
"""|tanh| above this counts as saturated: its slope 1 - 0.99² = 0.02 lets a fiftieth of the gradient through."""

SATURATED_SHARE = 0.3
"""Of a squashing layer's entries. Inputs of spread 1 saturate 0.8% of them, of spread 3 already 38%."""

SILENT_SHARE = 0.9
"""Of a rectifying layer's entries. Inputs centred on 0 silence half of a ReLU layer; nine tenths mean a shift."""

DEAD_SHARE = 0.1
"""Of a layer's units. A few dead units cost a little width; a tenth of them is a cause to look for."""

SPREAD = (0.9, 1.25)
"""Factor per layer on the spread of activations, at initialisation. 0.9 over ten layers leaves a third; tanh
without its gain does 0.86, with it 1.0. Growth is less harmful, and ReLU layers vary more."""

DEPTH = 3
"""Layers of a kind it takes to speak of a trend with depth."""

# -- gradients --

GRADIENT = (0.8, 1.25)
"""Factor per layer on the gradient, from the last layer back: over ten layers a tenth or ten times."""

GRADIENT_RANGE = 10.0
"""And this much between first and last layer in all: a short stack may vary without harm."""

UPDATE_RATIO = (1e-5, 1e-1)
"""Length of one update over the length of its weights. About 1e-3 is usual. Below 1e-5 a thousand steps change
less than a hundredth of a matrix; at 1e-1 ten steps replace it."""

# -- attention maps: every score is 0 for uniform attention and 1 for the pure pattern --

PATTERN = 0.5
"""A map is called by a pattern that holds more than half of what uniform attention leaves open."""

NEXT_TO = 1
"""Distance from the diagonal that still counts as diagonal: a token and its neighbours."""

SAME_ROW = 0.5
"""Cosine between the rows of neighbours that look at the same group. Rows of a wide diagonal reach 0.67, but run
on without a break; rows of two blocks have nothing in common."""

# -- embeddings --

ANISOTROPIC = 0.2
"""Mean cosine between tokens. Random directions in d dimensions have 0 ± 1/√d over single pairs."""
