"""What runs inside the limited child process that opens PDFs."""
