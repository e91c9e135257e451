"""Trouble that a user is told about, in words that say what to do."""


class Problem(Exception):
    """What is wrong, and with what."""


class NotThere(Problem):
    """Nothing of that name is there."""


class Malformed(Problem):
    """A document that cannot be read; it stays as it is."""


class Full(Problem):
    """There is no room; what was there before is there still."""
