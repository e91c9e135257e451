"""When each replica is asked, by what clock, and what is made of the answers."""
