"""`pallas up --watch`: the project's files are followed, and what an edit concerns starts, stops or restarts alone.

`snapshot` says what each member is made of, `changes` what differs between two of them, `follow` looks at the files and
has the supervisor do it.
"""
