"""Options: from the words of a command line or a TOML file to the dataclass of a command.

`options` lists the fields, `kinds` reads values, `reader` puts them together, `errors` says what does not fit; beside
them are options that several commands share, and in `runs` those that make or resume a run.
"""
