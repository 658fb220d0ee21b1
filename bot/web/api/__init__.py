"""HTTP API and MCP server for programs: bearer tokens, JSON, one service behind both."""
