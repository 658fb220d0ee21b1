"""What Slack shows beside answers: the App Home, and what surrounds a direct chat."""
