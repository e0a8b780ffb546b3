"""A run that tunes a base: `tuning` is how it does so, by which method and with what against forgetting.

`adapter` is what such a run holds on disk beside the name of its base: read, built, merged; `stored` leaves it there
for a decoder. `keeping` is what it keeps of what the base could do.
"""

from chainrule import lazy

lazy.names(__name__, rooms="adapter keeping tuning")
