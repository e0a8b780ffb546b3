"""What the microscope shows: a text as a model of any family reads it, by `chainrule.inspect`.

`reading` makes ids of texts, `edits` what was changed, `looks` answers for the parts of the page, `causes` says where
predictions come from, `sides` puts two models side by side, `words` shows models without layers, `program` writes the
same in Python.
"""
