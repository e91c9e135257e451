"""`pallas-gen build`: the images of a fleet, from what is installed here."""
