"""What goes on around the imports of an agent: the garbage collector, and the build of the image."""
