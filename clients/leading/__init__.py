"""What a member of topics does while it leads: watch topics, match patterns, learn lags, assign."""
