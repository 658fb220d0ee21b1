"""Sign-in to the console by OpenID Connect."""
