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
    from chainrule.inspect.embedding_space import anisotropy, clusters, concept_direction, embedding_space
    from chainrule.inspect.generalization import exposure, split_losses
    from chainrule.inspect.gradients import ParameterReport, trial_step
    from chainrule.inspect.inside.attribution import Attribution, attribute
    from chainrule.inspect.inside.edits import Edit, MeanHeads, Patch, SetPattern, Steer, ZeroHeads
    from chainrule.inspect.inside.lens import Lens, logit_lens
    from chainrule.inspect.inside.saliency import Saliency, input_gradient, integrated_gradients
    from chainrule.inspect.inside.sites import Sites, sites
    from chainrule.inspect.inside.view import View, view
    from chainrule.inspect.links import Link, attends, focus, strongest
    from chainrule.inspect.losses import curve, expected_loss, output_entropy
    from chainrule.inspect.spectrum import Spectrum, attention_spectra, recurrent_spectra, spectrum

__all__ = [
    "Attribution", "Distribution", "Edit", "Histogram", "LayerReport", "Lens", "Link", "MeanHeads",
    "ParameterReport", "Patch", "Pattern", "Saliency", "SetPattern", "Sites", "Spectrum", "Steer", "View",
    "ZeroHeads", "anisotropy", "attends", "attention_spectra", "attribute", "clusters", "concept_direction",
    "curve", "dead_units", "embedding_space", "expected_loss", "exposure", "focus", "gradient_map",
    "input_gradient", "integrated_gradients", "logit_lens", "maps", "output_entropy", "pattern", "patterns",
    "recurrence", "recurrent_spectra", "saturated_fraction", "saturation_point", "sites", "spectrum",
    "split_losses", "strongest", "trial_step", "view"
]  # fmt: skip

lazy.names(
    __name__,
    rooms="activations attention embeddings generalization gradients links losses probe recurrence",
    activations="Distribution Histogram LayerReport dead_units gradient_map saturated_fraction saturation_point",
    attention="Pattern maps pattern patterns",
    embedding_space="anisotropy clusters concept_direction embedding_space",
    generalization="exposure split_losses",
    gradients="ParameterReport trial_step",
    links="Link attends focus strongest",
    losses="curve expected_loss output_entropy",
    spectrum="Spectrum attention_spectra recurrent_spectra spectrum",
    **{
        "inside.attribution": "Attribution attribute",
        "inside.edits": "Edit MeanHeads Patch SetPattern Steer ZeroHeads",
        "inside.lens": "Lens logit_lens",
        "inside.saliency": "Saliency input_gradient integrated_gradients",
        "inside.sites": "Sites sites",
        "inside.view": "View view",
    },
)
