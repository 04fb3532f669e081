"""What a batch reads: topics, first positions, ranges, slices, and the offset document that says so."""
