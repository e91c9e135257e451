# PALLAS_BIND
fast = None
