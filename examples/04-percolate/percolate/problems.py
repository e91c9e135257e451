"""Trouble that a user is told about, in words that say what to do."""


class Problem(Exception):
    """What is wrong, and with what."""


class Malformed(Problem):
    """A document or a file of entities that cannot be read; what the memory had of it stays."""


class Full(Problem):
    """The memory takes no more; what it has stays."""


class EmbeddingFailed(Problem):
    """No vectors came: search goes on by words, and pieces wait for theirs."""


class NotThere(Problem):
    """Nothing of that name is in the memory."""


class Away(Problem):
    """The database of the memory does not answer; what it has stays."""
