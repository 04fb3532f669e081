"""`python -m ringleader.report GROUP`."""

from ringleader.report.command import main

if __name__ == "__main__":
    main()
