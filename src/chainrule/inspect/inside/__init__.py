"""Inside one forward pass: attention, residual stream and predictions of a text, and what changes if one changes them.

`sites` finds the parts of any model in its trace, `view` reads them, `edits` change them; the others compare.
"""
