"""`pallas-gen audit`: what is done with the records of a gateway."""
