"""How everything here is measured: rounds, cores, servers, load, and how a figure is told."""
