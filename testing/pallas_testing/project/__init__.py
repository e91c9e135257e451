"""The user's project, copied for one fleet so that nothing of it is changed and no other fleet is in its way."""
