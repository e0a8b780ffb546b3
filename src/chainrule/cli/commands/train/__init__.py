"""Commands that train: `chainrule train FAMILY`"""
