"""Health checks of platforms and the doctor: the installation they are given, and their findings."""
