"""Programs of others as clients of `chainrule serve`, unmodified: litellm, and lm_eval with `local-completions`.

They need packages that do not fit beside our peers, so `__main__` makes an environment of their own for them.
"""
