"""The contents of a batch: topics, first positions, ranges, slices, and the offset document with them."""
