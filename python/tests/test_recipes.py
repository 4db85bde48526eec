"""The recipes for continuous integration, as far as they can be run on one machine."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

HERE = Path(__file__).resolve()
ROOT = next((d for d in HERE.parents[1:3] if (d / "action.yml").is_file()), None)
pytestmark = pytest.mark.skipif(ROOT is None, reason="the recipes are not beside the tests")


def steps():
    return {step["name"]: step for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]}


def shell(step, folder, **env):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder,
        env={**os.environ, "PATH": path, **env},
        capture_output=True,
        text=True,
    )


def test_the_action_installs(tmp_path):
    done = shell(steps()["Install"], tmp_path, VERSION="")
    assert done.returncode == 0 and "margay" in done.stdout, done.stdout + done.stderr
    # Of the inputs each is used, and none that there is not.
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"inputs\.(\w+)", text)) == set(yaml.safe_load(text)["inputs"])


def test_the_action_annotates_what_is_wrong(tmp_path, saxpy):
    (tmp_path / "good.ptx").write_text(saxpy)
    assert shell(steps()["Check"], tmp_path, FILES="*.ptx").returncode == 0
    (tmp_path / "bad.ptx").write_text(".version 8.0\n.target sm_80\n.entry k() { frobnicate; }\n")
    done = shell(steps()["Check"], tmp_path, FILES="good.ptx *.ptx")
    assert done.returncode == 1
    assert "::error file=bad.ptx,line=3,col=14," in done.stdout


def test_what_the_page_shows_is_yaml():
    page = (ROOT / "docs/python/ci.md").read_text()
    shown = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.S)]
    assert len(shown) == 3
    action = shown[0]["jobs"]["test"]["steps"][1]
    assert set(action["with"]) <= set(yaml.safe_load((ROOT / "action.yml").read_text())["inputs"])


def test_uvx_runs_the_command(tmp_path, saxpy):
    uvx, wheel = shutil.which("uvx"), os.environ.get("MARGAY_WHEEL")
    if uvx is None or wheel is None:
        pytest.skip("no uvx here" if uvx is None else "MARGAY_WHEEL names no wheel")
    (tmp_path / "k.ptx").write_text(saxpy)
    command = [uvx, "--offline", "--python", sys.executable, "--from", wheel, "margay"]
    env = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    for arguments in (["check", "k.ptx"], ["exec", "--print-path"]):
        done = subprocess.run([*command, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_builds(tmp_path):
    dockerfile = next((f for f in (ROOT / "python/Dockerfile", ROOT / "Dockerfile") if f.is_file()), None)
    if dockerfile is None or shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode:
        pytest.skip("no docker here, or none that runs")
    built = subprocess.run(["docker", "build", "-q", "-f", str(dockerfile), str(tmp_path)], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    image = built.stdout.strip()
    assert subprocess.run(["docker", "run", "--rm", image, "--version"], capture_output=True).returncode == 0
