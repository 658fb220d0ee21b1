"""The console's pages for whoever runs the service: how questions were answered, in every channel."""
