"""Microsoft Teams platform: Bot Framework activities arrive over HTTP, answers leave with citations."""
