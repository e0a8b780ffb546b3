"""Characters and bytes: UTF-8 as the kernels take it, GPT-2's byte alphabet, ranges of Unicode categories."""
