"""Look at a model: plain arrays and words about losses, activations, gradients, attention and embeddings.

Nothing here draws, prints or changes a model, and no model knows of it.
"""

from chainrule.inspect import recurrence
from chainrule.inspect.activations import (
    Distribution,
    Histogram,
    LayerReport,
    dead_units,
    gradient_map,
    saturated_share,
    saturation_point,
)
from chainrule.inspect.attention import Pattern, maps, pattern, patterns, score_variance
from chainrule.inspect.embedding_space import anisotropy, clusters, concept_direction, embedding_space
from chainrule.inspect.generalisation import exposure, split_losses
from chainrule.inspect.gradients import ParameterReport, random_stack, trial_step
from chainrule.inspect.gradients import by_depth as gradients_by_depth
from chainrule.inspect.links import Link, attends, focus, strongest
from chainrule.inspect.losses import (
    curve,
    expected_loss,
    hand_made_logits,
    initial_loss,
)
from chainrule.inspect.spectrum import Spectrum, attention_spectra, recurrent_spectra, spectrum

__all__ = [
    "Distribution",
    "Histogram",
    "LayerReport",
    "Link",
    "ParameterReport",
    "Pattern",
    "Spectrum",
    "anisotropy",
    "attends",
    "attention_spectra",
    "clusters",
    "concept_direction",
    "curve",
    "dead_units",
    "embedding_space",
    "expected_loss",
    "exposure",
    "focus",
    "gradient_map",
    "gradients_by_depth",
    "hand_made_logits",
    "initial_loss",
    "maps",
    "pattern",
    "patterns",
    "random_stack",
    "recurrence",
    "recurrent_spectra",
    "saturated_share",
    "saturation_point",
    "score_variance",
    "spectrum",
    "split_losses",
    "strongest",
    "trial_step",
]
