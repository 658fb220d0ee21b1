"""Makes readings answer in their channels, and keeps SQL, index and disk equal."""
