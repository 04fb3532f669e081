"""The files under scenarios/: read into scenarios, and written again with the answers of a play.

See scenarios/README.md for the language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

SCENARIOS = Path(__file__).with_name("scenarios")

RESTARTED = "restart"
"""The broker of scenarios with the step RESTART: all of them go through the same restart."""

RESTART = "the broker restarts"

BROKERS = ("plain", "delay", "small", "brief", RESTARTED)
"""The settings that a scenario can ask for; see `brokers.PROPERTIES`."""

Block = tuple[str, ...]
"""One answer in words: its line, and the lines of what is inside it."""

Answers = list[Block]
"""The answers to one step."""

_LABELS = re.compile(r"\[((?:v\d+ ?)+)\] ")
_INDENT = "    "


class ScenarioError(ValueError):
    """A scenario file says something that the language has no word for; the text names file and line."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line-up of protocol versions that a scenario is played at; `label` is "" for the only one."""

    label: str = ""
    versions: tuple[tuple[str, int], ...] = ()

    def version(self, api: str) -> int | None:
        """The version of an API, or None where the scenario does not say."""
        return dict(self.versions).get(api)


@dataclass(slots=True)
class Step:
    """A command, the answers of Apache Kafka by entry label, and ours where they differ on purpose."""

    command: str
    comments: list[str] = field(default_factory=list)
    answers: dict[str, Answers] = field(default_factory=dict)
    anchor: str = ""
    """Of docs/kafka-differences.md, when `ours` holds."""
    ours: dict[str, Answers] = field(default_factory=dict)

    def expected(self, label: str, *, ours: bool) -> Answers:
        """The answers that the step should bring, from Kafka or from us."""
        return (self.ours if ours and self.anchor else self.answers).get(label, [])


@dataclass(slots=True)
class Scenario:
    """One title with its steps."""

    title: str
    path: Path
    covers: list[str] = field(default_factory=list)
    broker: str = "plain"
    versions: str = ""
    entries: list[Entry] = field(default_factory=lambda: [Entry()])
    steps: list[Step] = field(default_factory=list)
    trailer: list[str] = field(default_factory=list)
    """Comments after the last step."""

    @property
    def name(self) -> str:
        """For people: file and title."""
        return f"{self.path.stem}: {self.title}"

    @property
    def anchors(self) -> list[str]:
        """Where docs/kafka-differences.md explains this scenario's differences."""
        return [step.anchor for step in self.steps if step.anchor]


@dataclass(slots=True)
class ScenarioFile:
    """A topic: a few words, then scenarios."""

    path: Path
    intro: list[str]
    scenarios: list[Scenario]


def load(paths: Iterable[Path] | None = None) -> list[ScenarioFile]:
    """All files, or these."""
    return [parse(path.read_text(), path) for path in paths or sorted(SCENARIOS.glob("*.txt"))]


def parse(text: str, path: Path) -> ScenarioFile:
    """Read one file. Raises `ScenarioError`."""
    found = ScenarioFile(path, [], [])
    reader: _Reader | None = None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            if line.startswith("=== "):
                scenario = Scenario(line[4:].strip(), path)
                found.scenarios.append(scenario)
                reader = _Reader(scenario)
            elif reader is None:
                found.intro.append(line)
            else:
                reader.line(line)
        except ValueError as error:
            raise ScenarioError(f"{path.name}:{number}: {error}") from None
    for scenario in found.scenarios:
        _check(scenario)
    return found


def _check(scenario: Scenario) -> None:
    if not scenario.covers or not scenario.steps:
        raise ScenarioError(f"{scenario.path.name}: {scenario.title!r} has no `covers:` or no steps")
    restarts = sum(step.command == RESTART for step in scenario.steps)
    if restarts != (scenario.broker == RESTARTED):
        raise ScenarioError(
            f"{scenario.path.name}: {scenario.title!r} needs `broker: {RESTARTED}` and one step {RESTART!r}"
        )


class _Reader:
    """Reads the lines of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._comments: list[str] = []
        self._into: dict[str, Answers] = {}
        self._labels: list[str] = []

    def line(self, line: str) -> None:
        scenario = self._scenario
        if line.startswith("> "):
            step = Step(line[2:].strip(), self._comments)
            self._comments = scenario.trailer = []
            scenario.steps.append(step)
            self._into = step.answers
        elif line.startswith(_INDENT * 2):
            self._inside(line.removeprefix(_INDENT))
        elif line.startswith(_INDENT + "differs: "):
            scenario.steps[-1].anchor = line.split(": ", 1)[1].strip()
            self._into = scenario.steps[-1].ours
        elif line.startswith(_INDENT):
            self._answer(line.removeprefix(_INDENT))
        elif line.startswith("#"):
            self._comments.append(line)
            scenario.trailer = self._comments
        elif line.strip():
            self._header(line)

    def _header(self, line: str) -> None:
        scenario = self._scenario
        word, colon, rest = line.partition(":")
        if scenario.steps or not colon:
            raise ValueError(f"no step, answer or comment: {line!r}")
        match word:
            case "covers":
                scenario.covers = rest.split()
            case "broker":
                scenario.broker = rest.strip()
                if scenario.broker not in BROKERS:
                    raise ValueError(f"no such broker: {scenario.broker!r}; there are {', '.join(BROKERS)}")
            case "versions":
                scenario.versions = rest.strip()
                scenario.entries = _entries(scenario.versions)
            case _:
                raise ValueError(f"unknown header {word!r}")

    def _answer(self, line: str) -> None:
        known = [entry.label for entry in self._scenario.entries]
        if not self._scenario.steps:
            raise ValueError("an answer before the first step")
        match = _LABELS.match(line)
        self._labels = known
        if match is not None:
            self._labels = match[1].split()
            line = line[match.end() :]
            strangers = set(self._labels) - set(known)
            if strangers:
                raise ValueError(f"no such versions here: {' '.join(sorted(strangers))}")
        for label in self._labels:
            self._into.setdefault(label, []).append((line,))

    def _inside(self, line: str) -> None:
        for label in self._labels:
            blocks = self._into[label]
            blocks[-1] = (*blocks[-1], line)


def _entries(text: str) -> list[Entry]:
    """`JoinGroup 4 5 9, SyncGroup 2 3`: three line-ups; a shorter list repeats its last version."""
    columns = []
    for part in text.split(","):
        api, *numbers = part.split()
        if not numbers:
            raise ValueError(f"versions of {api}?")
        columns.append((api, [int(number) for number in numbers]))
    count = max(len(numbers) for _, numbers in columns)
    entries = []
    for place in range(count):
        line_up = tuple((api, numbers[min(place, len(numbers) - 1)]) for api, numbers in columns)
        entries.append(Entry(f"v{line_up[0][1]}", line_up))
    if count == 1:
        return [Entry("", entries[0].versions)]
    if len({entry.label for entry in entries}) < count:
        raise ValueError("each line-up needs another version of the API that is named first")
    return entries


# ---- writing ----


def render(found: ScenarioFile) -> str:
    """The file's text."""
    lines = [*found.intro]
    while lines and not lines[-1]:
        lines.pop()
    for scenario in found.scenarios:
        lines += ["", f"=== {scenario.title}", f"covers: {' '.join(scenario.covers)}"]
        if scenario.broker != "plain":
            lines.append(f"broker: {scenario.broker}")
        if scenario.versions:
            lines.append(f"versions: {scenario.versions}")
        labels = [entry.label for entry in scenario.entries]
        for step in scenario.steps:
            lines += [*step.comments, f"> {step.command}", *render_answers(step.answers, labels)]
            if step.anchor:
                lines += [f"{_INDENT}differs: {step.anchor}", *render_answers(step.ours, labels)]
        lines += scenario.trailer
    return "\n".join(lines) + "\n"


def render_answers(answers: dict[str, Answers], labels: list[str]) -> list[str]:
    """The answers of all entries, each answer once where they agree."""
    order: list[tuple[str, int]] = []
    found: dict[tuple[str, int], dict[str, Block]] = {}
    for label in labels:
        seen: dict[str, int] = {}
        after = -1
        for block in answers.get(label, []):
            heading = " ".join(block[0].split()[:2]).rstrip(":")
            key = (heading, seen.get(heading, 0))
            seen[heading] = key[1] + 1
            if key not in found:
                order.insert(after + 1, key)
            after = order.index(key)
            found.setdefault(key, {})[label] = block
    lines: list[str] = []
    for key in order:
        by_block: dict[Block, list[str]] = {}
        for label, block in found[key].items():
            by_block.setdefault(block, []).append(label)
        for block, with_it in by_block.items():
            tag = "" if len(with_it) == len(labels) else f"[{' '.join(with_it)}] "
            lines += [_INDENT + tag + block[0], *(_INDENT + line for line in block[1:])]
    return lines
