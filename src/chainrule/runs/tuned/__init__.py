"""A run that tunes a base: `tuning` is how it does so, by which method and with what against forgetting.

`adapter` is what such a run holds on disk beside the name of its `base`; `stored` leaves it there for a decoder,
`merging` adds it into the weights. `keeping` is what it keeps of what the base could do.
"""

from chainrule import lazy

lazy.names(__name__, rooms="adapter base keeping merging tuning")
