"""What Slack says of its channels: their names, and who is a member."""
