"""What stands between a project and its fleet on this machine: tools, keys, ports, images, host names."""
