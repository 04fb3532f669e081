"""A group's offsets: committing them in order, and fetching what is committed."""
