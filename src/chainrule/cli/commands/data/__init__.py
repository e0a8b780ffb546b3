"""Commands on documents and corpora: `chainrule data ...`"""
