"""Commands on models that are trained further: `chainrule tune ...`"""
