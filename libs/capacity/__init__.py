"""The view: what the log says, in the shape decisions need. The only code that speaks Redis."""
