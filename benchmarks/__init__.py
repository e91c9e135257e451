"""Figures of the kit beside those of its peers. `python -m benchmarks` runs them all, or those that are named."""
