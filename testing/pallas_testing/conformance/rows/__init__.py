"""The requirements, a table a module: one row and one function each, over evidence that was collected before."""
