"""SQL tables and the two engines that store them; ``database`` opens one, chosen by the URL."""
