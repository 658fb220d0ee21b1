"""Console sign-in by OpenID Connect."""
