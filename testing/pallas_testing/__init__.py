"""What tests of a fleet use: a pytest plugin, a scripted model, a judge of the Pallas contract, and Daedalus."""
