"""Tasks of alignment: which of two answers is better, learned by a policy (`dpo`) or by a reward model (`reward`).

`comparison_task` is what both share. In `policy` a model learns from the reward of its own answers, which may be a
`text_reward`, a function of yours; `answering` is how it is asked.
"""
