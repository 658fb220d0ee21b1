"""What is kept of whom, for how long, and how it is erased before its time."""
