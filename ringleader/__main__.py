"""``python -m ringleader`` is the command ``ringleader``."""

from ringleader.cli import main

if __name__ == "__main__":
    main()
