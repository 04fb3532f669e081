"""A PySpark shell that takes its input from a pipe, each a line of JSON. The page's Python runs it."""

import json
import runpy
import sys
import traceback
from pathlib import Path

DONE = "--- done ---"


def main() -> None:
    """Read and do, until the input ends."""
    started = runpy.run_path(sys.argv[1])["spark_session"]
    with started(Path.cwd()) as spark:
        names = {"spark": spark}
        print(DONE)
        for line in sys.stdin:
            try:
                exec(compile(json.loads(line), "<shell>", "exec"), names)
            except Exception:
                traceback.print_exc(file=sys.stdout)
            print(DONE)


if __name__ == "__main__":
    main()
