"""Commands on the files and sizes of models: `chainrule import`, `export`, `merge`, `count`"""
