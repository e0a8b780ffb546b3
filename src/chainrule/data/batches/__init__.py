"""Batches of every kind, each a pure function of the seed and the step; `source` is what all of them offer.

Of one text: `windows` at random, `streams` that go on. Of documents: `padded` or `packed`, `masked`, `conversations`.
Of examples: `pairs`, `labeled`, `tagged`; a BERT reads them `segmented`, a bag of words as `bags`.
"""
