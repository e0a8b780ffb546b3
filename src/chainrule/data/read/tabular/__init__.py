"""Files with columns or fields: `records` reads them one at a time, `table` looks at their first rows.

`columns` is the rule by which columns are chosen, with `header` and `dialect` for files that say little of themselves;
`reading` tells what was read, `suspect` what cannot be right.
"""
