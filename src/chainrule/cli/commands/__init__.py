"""One file per command, in a folder for each group: `chainrule data build` is data/build.py; import, export, merge and
count, which read the files or sizes of a model, are in models/.

Each has a dataclass `Command`: its fields are the options, its docstring the help, and `run` does the work.
Rooms are reached as `cr.runs`, `cr.data`, ...: they are imported on first use, so that help is there without them.
"""
