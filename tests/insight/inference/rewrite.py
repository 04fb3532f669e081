"""Writes the stories of the scenarios as they come out now: `python -m tests.insight.inference.rewrite`,
then read the difference."""

from __future__ import annotations

from tests.insight.inference.language import SCENARIOS, play, scenarios


def main() -> None:
    """All files."""
    for file in sorted(SCENARIOS.glob("*.txt")):
        stories = [story for one in scenarios(file) for story in play(one)]
        lines: list[str] = []
        for line in file.read_text().splitlines():
            if line.startswith("    "):
                continue
            lines.append(line)
            if line.startswith("> "):
                lines += [f"    {text}" for text in stories.pop(0)[1]]
        file.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
