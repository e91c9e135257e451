"""Trouble of the world, as an exception: a registry that does not answer, a command that fails."""

from __future__ import annotations


class Trouble(Exception):
    """The end of a command with exit code 1; the text says what is wrong and what to do, without the command's name."""
