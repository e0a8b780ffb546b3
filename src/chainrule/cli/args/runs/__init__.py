"""Runs as the options ask for them: `training` has what every family knows, `new` makes a run, `resume` continues one.

`seeds` is for several at once, `tuning` for `chainrule tune`, `align` for `chainrule align`.
"""
