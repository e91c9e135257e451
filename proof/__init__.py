"""The long form of what the tests hold: faults, load, bad inputs, measured; `make proof` writes docs/proof.md of it."""
