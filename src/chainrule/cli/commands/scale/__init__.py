"""Commands of the scaling laboratory: `chainrule scale ...`"""
