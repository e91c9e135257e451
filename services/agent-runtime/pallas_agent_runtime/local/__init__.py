"""The local target: a whole fleet as child processes on one machine (seed 001, `pallas` without arguments).

`members` decides what runs, `ports` checks that it can, `process` starts one child, `keeper` keeps it running,
`supervisor` runs all keepers and stops them in order, `screen` shows it.
"""
