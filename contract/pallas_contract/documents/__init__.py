"""The documents that several programs read or write: catalogue, cards, health, agents.lock, records of the audit."""
