"""Ready answers: made once per change, served as bytes in the callback of the parser."""
