"""The package as it is installed."""

import subprocess
import sys

import margay


def test_version_is_a_release_number():
    assert [part.isdigit() for part in margay.__version__.split(".")] == [True, True, True]


def test_every_name_is_there_and_documented():
    for name in margay.__all__:
        assert name == "__version__" or getattr(margay, name).__doc__, name
    assert set(margay.__all__) <= set(dir(margay))
    try:
        margay.nothing
    except AttributeError as error:
        assert "nothing" in str(error)


def test_types_are_those_of_the_names(tmp_path):
    """Type checkers know what `__getattr__` finds: the two lists are the same."""
    names = {}
    text = open(margay.__file__).read().split("if TYPE_CHECKING:")[1].split("_WHERE")[0]
    exec("".join(line[4:] if line.startswith("    ") else line for line in text.splitlines(True)), names)
    assert {name for name in names if name != "__builtins__"} == set(margay.__all__)


def test_an_import_loads_nothing_else():
    done = subprocess.run(
        [sys.executable, "-c", "import sys; before = set(sys.modules); import margay; print(*sorted(set(sys.modules) - before))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["margay"]
