"""Developer programs, run by the Makefile: benchmarks, soaks, evaluation, hostile files, mutations."""
