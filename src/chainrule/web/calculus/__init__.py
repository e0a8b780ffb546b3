"""What the calculus views show: `graph` an expression with its gradients, `ops` one op on numbers that can be edited.

`derivations` reads the pages of docs/derivations as blocks with MathML, `sources` the code of an op with its tags.
"""
