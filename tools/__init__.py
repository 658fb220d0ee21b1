"""Programs for developers, run by the Makefile: benchmarks, soaks, evaluation, hostile files, mutations."""
