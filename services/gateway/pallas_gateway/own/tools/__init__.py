"""The tools of seed 002: a call, alone or in a batch -> its result, within the limits of its tenant."""
