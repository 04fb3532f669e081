"""The files for people who join: what they name is there, and what they run is what the project runs."""

from __future__ import annotations

import json
import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.docs.test_links import LINK, WITHOUT_FENCES

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FORMS = sorted(
    set((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")) - {ROOT / ".github/ISSUE_TEMPLATE/config.yml"}
)
TOP = [ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/README.md")]


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def validator(name: str) -> Any:
    text = (files("check_jsonschema") / "builtin_schemas" / "vendor" / f"{name}.json").read_text()
    schema = json.loads(text)
    return jsonschema.validators.validator_for(schema)(schema)


def made_by(makefile: str) -> dict[str, list[str]]:
    """Target -> its commands."""
    found: dict[str, list[str]] = {}
    target = ""
    for line in makefile.splitlines():
        if match := re.match(r"([\w-]+):(?!=)", line):
            target = match[1]
        elif line.startswith("\t"):
            found.setdefault(target, []).append(line.strip().lstrip("@"))
    return found


MADE = made_by((ROOT / "Makefile").read_text())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_follows_its_schema(path: Path) -> None:
    # YAML 1.1 reads `on` as true.
    workflow = {"on" if name is True else name: value for name, value in loaded(path).items()}
    checked = validator("github-workflows")
    assert [error.message for error in checked.iter_errors(workflow)] == []
    assert list(checked.iter_errors(workflow | {"jobs": {"x": {"runs-onn": "y"}}}))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_follows_its_schema(path: Path) -> None:
    checked = validator("github-issue-forms")
    assert [error.message for error in checked.iter_errors(loaded(path))] == []
    assert list(checked.iter_errors({"name": "x", "description": "y", "body": []}))


def test_the_workflow_runs_what_ci_runs() -> None:
    lines = re.findall(r"^make (.+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    targets = {word for line in lines for word in line.split() if not word.startswith("-")}
    # Each job is a process of its own that collects once.
    ci = {f"make {target}" for target in targets - {"bytecode"}}
    assert len(ci) >= 4
    jobs = loaded(ROOT / ".github/workflows/ci.yml")["jobs"].values()
    runs = {step["run"] for job in jobs for step in job["steps"] if "run" in step}
    assert ci <= runs
    assert targets <= set(MADE)
    assert {run.split()[1] for run in runs if run.startswith("make ")} <= set(MADE)


def test_a_commit_is_checked_by_what_lint_runs() -> None:
    lint = [line for line in MADE["lint"] if not line.startswith("echo")]
    names = {"$(VENV)": ".venv", "$(PY)": ".venv/bin/python"}
    text = (ROOT / "Makefile").read_text()
    names["$(TYPED)"] = re.findall(r"^TYPED := (.*)$", text, re.MULTILINE)[0]
    for name, value in names.items():
        lint = [line.replace(name, value) for line in lint]
    (repository,) = loaded(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = [hook["entry"].replace(" --force-exclude", "") for hook in repository["hooks"]]
    # Hooks that are given file names need no folder.
    assert hooks == [re.sub(r"^(\S*ruff .*) \.$", r"\1", line) for line in lint]


@pytest.mark.parametrize("page", TOP, ids=lambda page: page.name)
def test_links_of_the_top_lead_somewhere(page: Path) -> None:
    links = LINK.findall(WITHOUT_FENCES.sub("", page.read_text()))
    local = [link.partition("#")[0] for link in links if not link.startswith("http")]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_names_in_contributing_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    commands = [
        line.partition("#")[0]
        for line in "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()
    ]
    targets = {words[1] for words in map(shlex.split, commands) if words[:1] == ["make"]}
    assert {"lint", "test", "mutants"} <= targets <= set(MADE)
    # Folders and files in backquotes and in commands; names that stand for the reader's own have an _x or _y.
    named = set(
        re.findall(
            r"(?<![\w./])((?:tests|coordinator|clients|docs|insight|protocol|ringleader|spark_bridge)/[\w./-]*\w)",
            text,
        )
    )
    assert len(named) > 15
    assert [name for name in sorted(named) if "_x.py" not in name and not (ROOT / name).exists()] == []
    for module in re.findall(r"python -m ((?:tests|tools)\.[\w.]+)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


GLOSSARY = (ROOT / "docs/glossary.md").read_text()
ENTRIES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GLOSSARY.splitlines()
    if line.startswith("| ") and not line.startswith("| Word")
]


def test_the_glossary_has_one_entry_for_each_word_in_one_sentence() -> None:
    words = [word for word, _, _ in ENTRIES]
    assert len(words) > 60
    assert len({word.lower() for word in words}) == len(words)
    for word, meaning, where in ENTRIES:
        assert meaning.endswith("."), word
        assert meaning.count(". ") == 0, f"{word}: one sentence"
        assert where, word


@pytest.mark.parametrize(("word", "where"), [(word, where) for word, _, where in ENTRIES])
def test_a_word_stands_on_the_page_that_the_glossary_names(word: str, where: str) -> None:
    for link in LINK.findall(where):
        page = re.sub(r"[.-]", " ", (ROOT / "docs" / link).read_text().lower())
        stem = re.sub(r" \(.*\)|,.*", "", word.lower()).removesuffix("e").replace("-", " ")
        assert stem in page, f"{word} does not stand in {link}"
