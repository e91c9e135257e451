"""Agents forked from one process that has imported what they import; Linux only (decision 0020).

`forker` is that process, `imports` keeps what it imported and by which variables, `proc_title` gives a fork a name of
its own, `parent` is the supervisor's end.
"""
