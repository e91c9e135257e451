"""Rules about what reaches a fleet from outside: published addresses, registrations, the gateway."""
