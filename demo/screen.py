"""The audience's view: a live screen on a terminal, plain lines elsewhere (a pipe, a build log)."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from demo import plan
from demo.picture import Generation, Picture

# Plain lines: one line of progress this often.
PLAIN_INTERVAL_S = 5.0
# For the cells of the table of owners, which are narrow.
SHORT = {
    plan.AIOKAFKA_1: "aio-1",
    plan.AIOKAFKA_2: "aio-2",
    plan.KAFKA_PYTHON: "kpy-1",
    plan.RINGLEADER_1: "rgl-1",
    plan.RINGLEADER_2: "rgl-2",
    plan.LIBRDKAFKA: "rdk-1",
    plan.SPARK: "spark",
    plan.SPARK_ALONE: "spark",
}
# Lines of the live screen beside those of the history and the events.
FIXED_LINES = 22
COLOURS = {
    plan.AIOKAFKA_1: "cyan",
    plan.AIOKAFKA_2: "bright_blue",
    plan.KAFKA_PYTHON: "yellow",
    plan.RINGLEADER_1: "cyan",
    plan.RINGLEADER_2: "bright_blue",
    plan.LIBRDKAFKA: "yellow",
    plan.SPARK: "magenta",
    plan.SPARK_ALONE: "green",
}


def owners_text(owners: dict[str, list[int]] | None) -> str:
    """``aiokafka-1: 0 3   spark-1: 2 5``; says so when it is not known."""
    if owners is None:
        return "(gone before anybody asked)"
    return (
        "   ".join(f"{client}: {' '.join(map(str, of)) or 'none'}" for client, of in sorted(owners.items()))
        or "nobody"
    )


def generation_line(generation: Generation) -> str:
    """One generation in one line."""
    return (
        f"{generation.group} generation {generation.number} because {generation.why} "
        f"(took {generation.took_ms} ms) -> {owners_text(generation.owners)}"
    )


class Screen(Protocol):
    """Shows a picture whenever it has changed."""

    def show(self, picture: Picture) -> None:
        """Show the picture as it is now."""

    def __enter__(self) -> Screen: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class PlainScreen:
    """New events and generations as they come, and a line of progress every few seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._events = 0
        self._generations = 0
        self._next_s = 0.0

    def show(self, picture: Picture) -> None:
        """Print what is new."""
        for at_s, text in picture.events[self._events :]:
            self._say(at_s, text)
        self._events = len(picture.events)
        for generation in picture.generations[self._generations :]:
            self._say(generation.at_s, generation_line(generation))
        self._generations = len(picture.generations)
        if picture.elapsed_s >= self._next_s and picture.produced:
            self._next_s = picture.elapsed_s + PLAIN_INTERVAL_S
            counts = {"produced": picture.produced, **picture.processed, plan.SPARK_ALONE: picture.alone}
            self._say(picture.elapsed_s, ", ".join(f"{client} {count:,}" for client, count in counts.items()))

    def _say(self, at_s: float, text: str) -> None:
        self._console.print(f"{at_s:6.1f} s  {text}", highlight=False, markup=False, soft_wrap=True)

    def __enter__(self) -> PlainScreen:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to put back."""


class LiveScreen:
    """One screen that redraws itself in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def show(self, picture: Picture) -> None:
        """Redraw."""
        self._live.update(draw(picture, self._console.height))

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()


def screen_for(console: Console) -> Screen:
    """A live screen when somebody watches, plain lines when not."""
    return LiveScreen(console) if console.is_terminal else PlainScreen(console)


def draw(picture: Picture, height: int = 50) -> RenderableType:
    """The whole live screen; on a short terminal the older generations and events go first."""
    title = f"Ringleader: {picture.phase}   {picture.elapsed_s:.0f} s"
    room = max(0, height - FIXED_LINES)
    generations, events = min(8, 1 + room // 4), min(6, 1 + room // 4)
    return Group(
        Panel(_progress(picture), title=title, title_align="left", border_style="blue"),
        Panel(_owners(picture), title="who owns what", title_align="left"),
        Panel(_history(picture, generations), title="generations, and why", title_align="left"),
        Panel(_events(picture, events), title="what happens", title_align="left"),
    )


def _progress(picture: Picture) -> Table:
    grid = Table.grid(padding=(0, 2), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    grid.add_column(justify="right", no_wrap=True)

    def bar(name: str, count: int, colour: str) -> None:
        shown = ProgressBar(
            total=picture.total, completed=count, complete_style=colour, finished_style=colour
        )
        grid.add_row(Text(name, style=colour), shown, f"{count:,}")

    bar("produced", picture.produced, "white")
    for client, count in sorted(picture.processed.items()):
        bar(f"{plan.SHARED_GROUP} / {client}", count, COLOURS.get(client, "white"))
    if picture.alone or plan.ALONE_GROUP in picture.groups:
        bar(f"{plan.ALONE_GROUP} / {plan.SPARK_ALONE}", picture.alone, COLOURS[plan.SPARK_ALONE])
    return grid


def _owners(picture: Picture) -> Table:
    table = Table(box=None, expand=True)
    table.add_column("group", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for partition in range(plan.PARTITIONS):
        table.add_column(f"p{partition}", ratio=1)
    table.add_column("lag", justify="right", no_wrap=True)
    for name, now in sorted(picture.groups.items(), reverse=True):
        owner = {partition: client for client, of in now.owners.items() for partition in of}
        names = [owner.get(partition, "") for partition in range(plan.PARTITIONS)]
        cells = [Text(SHORT.get(client, client or "-"), COLOURS.get(client, "dim")) for client in names]
        table.add_row(name, now.state, *cells, f"{now.total_lag:,}")
    return table


def _history(picture: Picture, most: int) -> Table:
    grid = Table.grid(padding=(0, 2))
    for generation in picture.generations[-most:]:
        owners = Text(owners_text(generation.owners))
        for client, colour in COLOURS.items():
            owners.highlight_regex(rf"{client}: [\d ]*", colour)
        name = f"{generation.group} {generation.number}"
        grid.add_row(f"{generation.at_s:5.0f} s", Text(name, "bold"), generation.why, owners)
    return grid


def _events(picture: Picture, most: int) -> Group:
    lines = (Text(f"{at_s:5.0f} s  {text}", no_wrap=True) for at_s, text in picture.events[-most:])
    return Group(*lines)
