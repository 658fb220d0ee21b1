"""The tables and the two engines that can keep them; ``database`` opens one, chosen by the URL."""
