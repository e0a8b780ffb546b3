"""Commands that tune a trained model: `chainrule tune`"""
