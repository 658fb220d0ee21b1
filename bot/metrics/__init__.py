"""What is counted for Prometheus: bounded labels, no text, no names."""
