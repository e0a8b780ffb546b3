"""Commands of the scaling laboratory: `chainrule scale plan`, `fit`, `predict`"""
