"""Measure a model: losses, activations, gradients, attention and embeddings, as plain arrays and numbers.

Nothing here draws, prints, interprets or changes a model. `doctor` says what the numbers mean.
"""

from typing import TYPE_CHECKING

from chainrule import lazy

if TYPE_CHECKING:
    from chainrule.inspect import recurrence
    from chainrule.inspect.activations import (
        Distribution,
        Histogram,
        LayerReport,
        dead_units,
        gradient_map,
        saturated_fraction,
        saturation_point,
    )
    from chainrule.inspect.attention import Pattern, maps, pattern, patterns
    from chainrule.inspect.bag import BagView
    from chainrule.inspect.embedding_space import anisotropy, clusters, concept_direction, embedding_space
    from chainrule.inspect.generalization import exposure, split_losses
    from chainrule.inspect.gradients import ParameterReport
    from chainrule.inspect.inside.ablation import Ablation, ablation
    from chainrule.inspect.inside.architecture import architecture
    from chainrule.inspect.inside.attribution import Attribution, attribute
    from chainrule.inspect.inside.compare import Comparison, compare, effect
    from chainrule.inspect.inside.edits import Edit, MeanHeads, Patch, SetPattern, Steer, ZeroHeads, edited
    from chainrule.inspect.inside.heads import HeadScores, head_scores
    from chainrule.inspect.inside.lens import Lens, lens_of, logit_lens
    from chainrule.inspect.inside.outputs import (
        cosine_gradient,
        label_gradient,
        label_logprobs,
        reward_gradient,
        rewards,
    )
    from chainrule.inspect.inside.patching import Patching, patching
    from chainrule.inspect.inside.saliency import (
        Saliency,
        input_gradient,
        integrated_gradients,
        output_gradient,
    )
    from chainrule.inspect.inside.sites import Sites, sites
    from chainrule.inspect.inside.steering import head_means, steering_vector
    from chainrule.inspect.inside.view import View, view
    from chainrule.inspect.links import Link, attends, focus, strongest
    from chainrule.inspect.losses import curve, expected_loss, output_entropy
    from chainrule.inspect.spectrum import Spectrum, attention_spectra, recurrent_spectra, spectrum

__all__ = [
    "Ablation", "Attribution", "BagView", "Comparison", "Distribution", "Edit", "HeadScores", "Histogram",
    "LayerReport", "Lens", "Link", "MeanHeads", "ParameterReport", "Patch", "Patching", "Pattern", "Saliency",
    "SetPattern", "Sites", "Spectrum", "Steer", "View", "ZeroHeads", "ablation", "anisotropy", "architecture",
    "attends", "attention_spectra", "attribute", "clusters", "compare", "concept_direction", "cosine_gradient", "curve",
    "dead_units", "edited", "effect", "embedding_space", "expected_loss", "exposure", "focus", "gradient_map",
    "head_means", "head_scores", "input_gradient", "integrated_gradients", "label_gradient", "label_logprobs",
    "lens_of", "logit_lens", "maps", "output_entropy", "output_gradient", "patching", "pattern", "patterns",
    "recurrence", "recurrent_spectra", "reward_gradient", "rewards", "saturated_fraction", "saturation_point",
    "sites", "spectrum", "split_losses", "steering_vector", "strongest", "view",
]  # fmt: skip

lazy.names(
    __name__,
    rooms="activations attention embeddings generalization gradients links losses probe recurrence",
    activations="Distribution Histogram LayerReport dead_units gradient_map saturated_fraction saturation_point",
    attention="Pattern maps pattern patterns",
    bag="BagView",
    embedding_space="anisotropy clusters concept_direction embedding_space",
    generalization="exposure split_losses",
    gradients="ParameterReport",
    links="Link attends focus strongest",
    losses="curve expected_loss output_entropy",
    spectrum="Spectrum attention_spectra recurrent_spectra spectrum",
    **{
        "inside.ablation": "Ablation ablation",
        "inside.architecture": "architecture",
        "inside.attribution": "Attribution attribute",
        "inside.compare": "Comparison compare effect",
        "inside.edits": "Edit MeanHeads Patch SetPattern Steer ZeroHeads edited",
        "inside.heads": "HeadScores head_scores",
        "inside.lens": "Lens lens_of logit_lens",
        "inside.outputs": "cosine_gradient label_gradient label_logprobs reward_gradient rewards",
        "inside.patching": "Patching patching",
        "inside.saliency": "Saliency input_gradient integrated_gradients output_gradient",
        "inside.sites": "Sites sites",
        "inside.steering": "head_means steering_vector",
        "inside.view": "View view",
    },
)
