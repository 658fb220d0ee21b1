"""Command line: ``footnote serve|ingest|ask|documents|channels|folders|restore``.

Results go to stdout, progress and logs to stderr. Exit status: 0 done or answered, 1 failed or
something quarantined, 2 usage error.
"""
