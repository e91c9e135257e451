"""Everything that a fleet is made of, in one place, for a site without a network; and the check at the other end."""
