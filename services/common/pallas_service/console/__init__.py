"""A page on which people talk to agents; who serves it says which agents there are and leads the calls to them."""
