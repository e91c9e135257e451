"""`agent.execute` of seed 003: one function of an agent behind the gateway, in the seed's envelope and codes."""
