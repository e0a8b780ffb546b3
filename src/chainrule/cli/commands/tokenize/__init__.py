"""Commands on tokenizers: `chainrule tokenize ...`"""
