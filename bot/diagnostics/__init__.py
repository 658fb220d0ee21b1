"""What ``footnote doctor`` looks at: each family of checks in a module, run side by side."""
