"""The Pallas contract as a table of requirements, and a judge of any agent or registry (seeds 000 and 001)."""
