"""The local target: a whole fleet as child processes on one machine (seed 001, `pallas` without arguments).

`programs` decides what runs, `ports` holds where it listens, `child` starts one
process, `restarts` keeps it running, `supervisor` runs all of them and stops them in order, `absences` tells the
registry why some are not up, `console` shows it, `record` writes it down for other commands, `guardian` ends what they
leave behind.
"""
