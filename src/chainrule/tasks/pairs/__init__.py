"""Tasks on pairs of texts: data and split in `pair_task`.

`translation` writes the second text from the first (`translating`, `scheduled_sampling`); `embedding` finds the second
among others by its vector.
"""
