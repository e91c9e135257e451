"""Two fleets side by side: what changes, for whom, and whether they have to do something about it."""
