"""The Studio: one local page that looks inside runs, models and gradients. It draws; numbers come from elsewhere.

`app` puts the routes together, `jobs` runs what takes long in threads, `models` reads models once; `microscope`,
`playground`, `runs`, `calculus`, `tokens`, `lab` and `lessons` answer for their views as plain dictionaries; `page/` is
what the browser loads, `bundle` the same as one file.
"""
