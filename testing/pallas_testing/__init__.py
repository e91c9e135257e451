"""What tests of a fleet can use: Daedalus, the client that the Pallas contract was written for."""
