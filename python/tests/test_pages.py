"""The pages under docs/python: every file that a page has its reader save is saved, and every command is run, in a virtual environment of
its own. It has the packages of this one, and a page is skipped where a package that it installs is not here; with `MARGAY_TEST_FETCH=1`
it is empty, as a reader's is, and pip fetches everything but margay, which is the wheel that `MARGAY_WHEEL` names."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
PAGES = next((d for d in (HERE.parents[1] / "docs/python", HERE.parents[2] / "docs/python") if d.is_dir()), None)
NAMES = sorted(p.name for p in PAGES.glob("*.md")) if PAGES else []

# What the commands must print, by exact arithmetic; a page without an entry asserts inside of its own files.
PRINTS = {
    "dask.md": "[0, 1, 10, 111]",
    "ray.md": "[0, 1, 10, 111]",
    "nvcc.md": "no error: 1 4 9 16",
    "index.md": "E0201 3",
}


def files(page):
    """Name and text of each file that the page has its reader save."""
    found = re.findall(r"Save this as `([^`]+)`[^\n]*\n\n```\w*\n(.*?)```", page, re.S)
    return [(name, text) for name, text in found if not name.startswith(".")]


def commands(page):
    blocks = re.findall(r"```console\n(.*?)```", page, re.S)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def missing(lines):
    """Packages that `pip install` would have to fetch, those of extras included."""
    wanted = [word.strip('"') for line in lines if line.startswith("pip install ") for word in line.split()[2:]]
    absent, seen = set(), set()
    while wanted:
        name, extras = re.match(r"([\w.-]+)\s*(?:\[([^]]*)\])?", wanted.pop()).groups()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            absent.add(name)
            continue
        names = [extra.strip() for extra in (extras or "").split(",") if extra.strip()]
        wanted += [need for need in needs if any(re.search(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]", need) for extra in names)]
    return sorted(absent)


def with_packages_from_here(environment):
    """Creates a virtual environment that sees the packages and commands of this one; its PATH."""
    venv.create(environment, with_pip=True, symlinks=True)
    inner = sysconfig.get_path("purelib", "venv", {"base": str(environment), "platbase": str(environment)})
    # With the `.pth` files there.
    Path(inner, "outer.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return [str(environment / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]


def without_packages_from_here(environment):
    """Creates a virtual environment that knows nothing of this one, whose commands would run on this one's packages; its PATH."""
    venv.create(environment, with_pip=True, symlinks=True)
    here = Path(sys.executable).parent
    others = [folder for folder in os.environ["PATH"].split(os.pathsep) if Path(folder) != here]
    return [str(environment / "bin"), *others]


@pytest.fixture
def environment(tmp_path):
    """The folder of a page's virtual environment, deleted after the test: they are large."""
    folder = tmp_path / "environment"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("name", NAMES)
def test_page(name, tmp_path, environment):
    page = (PAGES / name).read_text()
    lines = commands(page)
    if not lines:
        pytest.skip("no commands for a shell at hand")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    if os.environ.get("MARGAY_TEST_FETCH"):
        path = without_packages_from_here(environment)
        constraint = tmp_path / "constraint.txt"
        constraint.write_text(f"margay @ {Path(os.environ['MARGAY_WHEEL']).resolve().as_uri()}\n")
        env["PIP_CONSTRAINT"] = str(constraint)
    elif absent := missing(lines):
        pytest.skip(f"{', '.join(absent)} not installed here; MARGAY_TEST_FETCH=1 has pip fetch it")
    else:
        path = with_packages_from_here(environment)
    room = tmp_path / "room"
    room.mkdir()
    for file, text in files(page):
        (room / file).write_text(text)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=room,
        env={**env, "PATH": os.pathsep.join(path), "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=1800,
    )
    unreachable = ("Could not find a version", "Failed to establish a new connection", "Temporary failure in name resolution")
    if done.returncode and any(words in done.stdout for words in unreachable):
        pytest.skip(f"packages cannot be reached: {[x for x in done.stdout.splitlines() if 'ERROR' in x][:1]}")
    assert done.returncode == 0, done.stdout
    assert PRINTS.get(name, "") in done.stdout, done.stdout
    if any(line.startswith("pytest") for line in lines):
        assert re.search(r"margay: \d+ tests? on .*, 0 faults", done.stdout), done.stdout


@pytest.mark.skipif(PAGES is None, reason="the pages are not beside the tests")
def test_pages_link_to_what_is_there():
    for name in NAMES:
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", (PAGES / name).read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            # What lies outside of docs is not beside the tests where they run alone.
            if target.startswith("../../"):
                continue
            assert (PAGES / target).exists(), f"{name}: {target}"
