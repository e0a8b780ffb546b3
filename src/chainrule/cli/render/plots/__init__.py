"""Figures by name: the module of this package and the function in it that draws, imported when it is asked for.

A function takes nothing and returns a matplotlib Figure, or text: an SVG document or a table.
"""

from __future__ import annotations

FIGURES = {
    "loss-initialisation": ("diagnostics.loss_curves", "loss curves with bad and good initialization"),
    "gradient-map": ("diagnostics.gradient_maps", "gradient maps of tanh, saturated and not"),
    "dead-neuron": ("diagnostics.dead_neuron", "a unit that no example moves: a white column"),
    "histograms": ("diagnostics.histograms", "activations and gradients by layer, proper and improper"),
    "logit-table": ("diagnostics.logit_table", "losses of hand-made logits, a text table"),
    "softmax-peaks": ("diagnostics.softmax_peaks", "attention weights with and without 1/√d"),
    "gradient-depth": ("diagnostics.gradient_depth", "gradients by depth, with and without residuals"),
    "computation-graph": ("foundations.computation_graph", "an expression with values and gradients"),
    "two-bases": ("foundations.two_bases", "one vector in two bases"),
    "chain-rule": ("foundations.chain_rule", "the chain rule as amplification"),
    "loss-surface": ("foundations.loss_surface", "x² + y² with its gradient"),
    "relu": ("foundations.relu", "a linear function and what ReLU makes of it"),
    "bigram-emma": ("ngram.emma", "which letter follows which in 'emma'"),
    "bigram-graph": ("ngram.identifiers", "the same for the names in Python's library, darker if frequent"),
    "one-hot": ("ngram.one_hot", "the context of a 4-gram as three one-hot rows"),
    "rate-search": ("training.rate_search", "the loss against the learning rate, and the chosen range"),
    "rate-decay": ("training.rate_decay", "the loss calms down when the rate drops at 90 %"),
    "xor": ("separation.xor", "no line separates XOR, a network does"),
    "feature-space": ("separation.feature_space", "parts that a new feature makes separable"),
    "entropy": ("foundations.entropy", "entropy of three models; loss against confidence"),
    "learning-rates": ("foundations.learning_rates", "gradient descent on θ² at four rates"),
    "attention-maps": ("attention.attention_maps", "who attends to whom, head by head"),
    "attention-growth": ("attention.time_growth", "the time of attention for n, 2n, 4n ... tokens"),
    "positions": ("attention.positions", "sinusoidal positions as a picture, and their frequencies"),
    "bradley-terry": (
        "alignment.bradley_terry",
        "the probability that an answer is preferred, by its reward",
    ),
    "kl-frontier": (
        "alignment.frontier",
        "reward against KL: the best that can be had, and what methods reach",
    ),
    "optimum-distance": (
        "alignment.distance",
        "how near DPO, PPO, REINFORCE and GRPO come to the best policy",
    ),
    "beta-effect": ("alignment.beta_effect", "reward and KL of the best policy for each β, and of DPO"),
    "kl-estimators": ("alignment.kl_estimators", "three estimates of a KL from samples: bias and noise"),
    "reward-hacking": (
        "alignment.reward_hacking",
        "a learned reward rises, the true score falls: β = 0 and 0.1",
    ),
    "length-bias": ("alignment.length_bias", "judges who prefer short answers teach that short is good"),
    "power-law": ("scaling.power_law", "a power law on plain and on logarithmic axes"),
    "allocation": ("scaling.allocation", "how large a model to train with a budget, by three rules"),
    "emergence": ("scaling.emergence", "steady progress that a threshold makes look sudden"),
    "recurrence": ("recurrence.unrolled", "an unrolled recurrent network and its gradients through time"),
}
"""name -> (module.function, what it shows)"""
