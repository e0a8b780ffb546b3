"""What a model reads when it is asked: prompts and conversations, as text and as ids.

`formats` writes messages with roles, `template` as a model's own Jinja template says, in a process of its own
(`jinja_worker`); `roles` is the format of models that are tuned here; `masking` says which tokens of a conversation are
learned; `prompts` makes the ids of plain and few-shot prompts.
"""
