"""Commands for programs: their tokens, and the MCP server over standard input."""
