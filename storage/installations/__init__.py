"""Where our apps are installed, with what they were given there."""
