"""What a model is trained on and evaluated by: data, split, tokenizer, batches, metric.

One class per kind of training, one file each.
"""

from chainrule.tasks.baselines import count_baselines
from chainrule.tasks.scheduled_sampling import ScheduledSampling

__all__ = ["ScheduledSampling", "count_baselines"]
