"""Found by Spark by its name: makes ``format("ringleader")`` work without a register call."""
