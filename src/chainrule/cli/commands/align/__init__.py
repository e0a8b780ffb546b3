"""`chainrule align`"""
