"""The parts of a consumer: positions, fetching ahead, handing out, and progress."""
