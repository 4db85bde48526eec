"""`margay.enable()` and `margay exec`: what Python programs find when they look for CUDA, and what runs when."""

import os
import subprocess
import sys

import margay
import pytest

# A program that uses the driver as CUDA libraries do: by name.
DRIVER = """
import ctypes
driver = ctypes.CDLL("libcuda.so.1")
runtime = ctypes.CDLL("libcudart.so.13")
count, name = ctypes.c_int(), ctypes.create_string_buffer(100)
assert driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
assert driver.cuDeviceGetName(name, 100, 0) == 0
other = ctypes.c_int()
assert runtime.cudaGetDeviceCount(ctypes.byref(other)) == 0
print(count.value, other.value, name.value.decode())
"""


def test_libraries_are_found_by_name_without_a_restart(python):
    out = python(
        "print('begin', flush=True)\nimport margay\nmargay.enable('h100,count=2')\nmargay.enable()\nassert margay.is_enabled()" + DRIVER
    )
    assert out == "begin\n2 2 NVIDIA H100 80GB HBM3\n"


def test_processes_that_an_enabled_one_starts_are_enabled(python):
    out = python(
        "import subprocess, sys, margay\nmargay.enable('t4')\n"
        f"text = {DRIVER!r} + 'import margay; assert margay.is_enabled()'\n"
        "print(subprocess.run([sys.executable, '-c', text], capture_output=True, text=True, check=True).stdout, end='')"
    )
    assert out == "1 1 Tesla T4\n"


def test_the_command_does_the_same_without_a_change(python):
    assert python(DRIVER, before=[margay.command(), "exec", "--device", "t4", "--"]) == "1 1 Tesla T4\n"
    # And `enable()` has nothing to add.
    assert python("import margay\nmargay.enable()" + DRIVER, before=[margay.command(), "exec", "--"]).startswith("1 1 ")


# What NVML's bindings and scripts ask for: a device as the driver describes it, `CUDA_VISIBLE_DEVICES` or not.
NVML = """
import ctypes, subprocess
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device, name, count, major, minor = ctypes.c_void_p(), ctypes.create_string_buffer(96), ctypes.c_uint(), ctypes.c_int(), ctypes.c_int()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(count.value - 1, ctypes.byref(device)) == 0
assert nvml.nvmlDeviceGetName(device, name, 96) == 0
assert nvml.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor)) == 0
assert nvml.nvmlDeviceGetUtilizationRates(device, None) == 3  # not supported
query = ["nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader"]
print(count.value, name.value.decode(), major.value, minor.value)
print(subprocess.run(query, capture_output=True, text=True, check=True).stdout, end="")
"""


@pytest.mark.parametrize("way", ["exec", "enable"])
def test_tools_find_the_devices(python, way, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    said = "2 Tesla T4 7 5\nTesla T4, 7.5\nTesla T4, 7.5\n"
    if way == "exec":
        assert python(NVML, before=[margay.command(), "exec", "--device", "t4,count=2", "--"]) == said
    else:
        assert python("import margay\nmargay.enable('t4,count=2')\n" + NVML) == said


def test_a_whole_shell_can_be_under_margay(python, tmp_path):
    (tmp_path / "program.py").write_text("import margay; assert margay.is_enabled()" + DRIVER)
    shell = 'eval "$(margay exec --print-env)"; exec "$0" program.py'
    path = os.pathsep.join([os.path.dirname(margay.command()), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-ec", shell, sys.executable], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.stdout.startswith("1 1 "), done.stderr
    assert python("import os; print(os.environ['MARGAY_PYTHON'])", before=[margay.command(), "exec", "--"]) == "1\n"


def test_without_either_nothing_of_the_sort_is_there(python):
    out = python("import sys, margay\nprint(margay.is_enabled(), any('margay_startup' in str(f) for f in sys.meta_path))")
    assert out == "False False\n"


def packages(tmp_path, **texts):
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)


def test_a_package_with_a_runtime_of_its_own_restarts_the_program_once(python, tmp_path):
    packages(tmp_path, cupy="import margay; assert margay._enable._is_redirected(); where = __file__")
    text = "import sys, os, margay\nprint('begin', os.getpid(), flush=True)\nmargay.enable()\nimport cupy\nprint(sys.argv[1:], margay.is_enabled())"
    first, second, last = python(text, "a b", "--c").splitlines()
    # The same process, from the top, with the same arguments.
    assert first == second and first.startswith("begin ")
    assert last == "['a b', '--c'] True"


def test_a_restart_at_once_and_never(python, tmp_path):
    packages(tmp_path, cupy="")
    begin = "import margay\nprint('begin', flush=True)\n"
    assert python(begin + "margay.enable(restart=True)\nprint('end')") == "begin\nbegin\nend\n"
    assert python(begin + "margay.enable(restart=False)\nimport cupy\nprint('end')") == "begin\nend\n"


def test_where_a_restart_cannot_be_it_says_what_to_do(python, tmp_path):
    packages(tmp_path, cupy="")
    threads = "import threading, margay\nevent = threading.Event()\nthreading.Thread(target=event.wait).start()\nmargay.enable()\ntry:\n    import cupy\nfinally:\n    event.set()"
    done = python(threads, check=False)
    assert done.returncode == 1 and "other threads run" in done.stderr and "margay exec" in done.stderr
    prompt = subprocess.run(
        [sys.executable, "-"], input="import margay\nmargay.enable()\nimport cupy", text=True, capture_output=True, cwd=tmp_path
    )
    assert prompt.returncode == 1 and "standard input" in prompt.stderr


def test_torch_is_served_after_its_import(python, tmp_path):
    # A package of that name in torch's place, and one in the place of margay's part for it, which says when it is called.
    packages(tmp_path, torch="print('torch', __spec__.loader.get_filename(), __loader__ is __spec__.loader)")
    program = "import sys, types\npart = types.ModuleType('margay.torch')\npart.install = lambda: print('install')\nsys.modules['margay.torch'] = part\n"
    before = f"torch {tmp_path}/torch.py True\n"
    assert python(program + "import margay\nmargay.enable()\nmargay.enable()\nimport torch\nimport torch") == before + "install\n"
    assert python(program + "import torch", before=[margay.command(), "exec", "--"]) == before + "install\n"
    assert python(program + "import torch\nimport margay\nmargay.enable()") == before + "install\n"
    assert python(program + "import torch") == before


def test_the_cuda_plugin_of_jax_is_refused_in_one_sentence(python, tmp_path):
    folder = tmp_path / "jax_plugins" / "xla_cuda13"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("def initialize():\n    raise RuntimeError('Unable to load cuPTI')\n")
    done = python("import margay\nmargay.enable()\nimport jax_plugins.xla_cuda13 as plugin\nplugin.initialize()", check=False)
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done.stderr
    assert "JAX" in done.stderr and "CPU" in done.stderr


def test_words_that_nobody_understands_are_an_error_of_the_driver(python):
    done = python("import margay\nmargay.enable('gpu9000')" + DRIVER, check=False)
    assert done.returncode == 1 and "`gpu9000`" in done.stderr


def test_the_command_is_the_one_that_the_wheel_brought():
    done = subprocess.run([margay.command(), "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"margay {margay.__version__}\n"


def test_llvm_is_the_one_that_the_wheel_brought(python, saxpy):
    np = pytest.importorskip("numpy")
    del np
    out = python(
        "import margay, numpy as np\n"
        f"k = margay.Module({saxpy!r}, engine='simd').kernel()\nx = np.ones(4, np.float32)\nk[1, 4](4, 1.0, x, x)\n"
        "assert x.tolist() == [2] * 4\n"
        "print(*sorted({line.split('/')[-1].strip() for line in open('/proc/self/maps') if 'llvm' in line.lower()}))",
        env={"MARGAY_CACHE": "off"},
    )
    assert out == "libmargay_llvm.so\n"
