"""The agents that are written in Python; the others are cards in this folder."""
