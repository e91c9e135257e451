"""The agent that is written in Python; the others are cards in this folder."""
