"""What a consumer is made of: positions, fetching ahead, handing out, and progress."""
