"""The leader of a group whose members assign: topics, lags, and the assignment computed from them."""
