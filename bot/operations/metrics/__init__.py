"""Prometheus metrics and OpenTelemetry spans: bounded labels, no text, no names."""
