"""Commands on the directories of runs: `chainrule runs ...`"""
