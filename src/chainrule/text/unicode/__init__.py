"""Characters and bytes: `utf8` as the kernels take it, GPT-2's `byte_alphabet`, ranges of Unicode `categories`.

`expressions` matches regular expressions with categories in Python, `programs` in C++.
"""
