"""Answers of agents: text, progress on the way, and the tree of calls that the progress tells of."""
