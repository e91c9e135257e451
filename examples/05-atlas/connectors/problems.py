"""Trouble that a user is told about, in words that say what to do."""


class Problem(Exception):
    """What is wrong, and with what."""
