"""Commands that learn from preferences and rewards: `chainrule align ...`"""
