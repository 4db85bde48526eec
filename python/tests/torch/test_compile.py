"""`torch.compile` with kernels that Triton makes and margay runs."""

import copy
import shutil
from pathlib import Path

import pytest
import torch
from test_training import convnet, mlp, transformer
from torch.nn import functional as F
from torch.utils import cpp_extension

pytest.importorskip("triton")


def test_fused_kernels_forward_and_backward():
    def function(a, b):
        return F.gelu(a @ b + 1).sum(-1).softmax(0)

    a, b = (torch.randn(24, 24, device="cuda", requires_grad=True) for _ in range(2))
    expected, actual = function(a, b), torch.compile(function)(a, b)
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-6)
    grad = torch.randn_like(expected)
    for x, y in zip(torch.autograd.grad(actual, (a, b), grad), torch.autograd.grad(expected, (a, b), grad), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("make", [mlp, convnet, transformer])
def test_training_compiled(make):
    net, x = make()
    net, x = net.cuda(), x.cuda()
    y = torch.randint(0, 10, (x.shape[0],), device="cuda")
    found = []
    for module in (copy.deepcopy(net), torch.compile(net)):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        found.append(losses)
    assert found[1] == pytest.approx(found[0], rel=1e-4)


@pytest.mark.parametrize("make", [mlp, transformer])
@pytest.mark.parametrize("options", [{"backend": "cudagraphs"}, {"mode": "reduce-overhead"}])
def test_graphs_of_compiled_code(options, make):
    """The first call compiles, the second records graphs and replays them at once, the others replay them."""
    net, x = make()
    net, x = net.cuda(), x.cuda()
    y = torch.randint(0, 10, (x.shape[0],), device="cuda")
    compiled = torch.compile(net, **options)
    for _ in range(4):
        losses, grads = [], []
        for module in (net, compiled):
            net.zero_grad()
            loss = F.cross_entropy(module(x), y)
            loss.backward()
            losses.append(loss.item())
            grads.append([p.grad.clone() for p in net.parameters()])
        assert losses[1] == pytest.approx(losses[0], rel=1e-4)
        torch.testing.assert_close(grads[1], grads[0], rtol=1e-3, atol=1e-5)
        with torch.no_grad():
            for p, grad in zip(net.parameters(), grads[0], strict=True):
                p -= 0.1 * grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_attention_has_the_results_that_torch_describes(dtype):
    """Compiled code asserts the type and the layout of each result of the operators that it calls."""
    query = torch.randn(1, 2, 24, 16, device="cuda", dtype=dtype, requires_grad=True)
    grads = []
    for attend in (F.scaled_dot_product_attention, torch.compile(F.scaled_dot_product_attention)):
        out = attend(query, query, query, is_causal=True)
        grads += torch.autograd.grad(out.square().sum(), query)
    torch.testing.assert_close(*grads, rtol=2e-2, atol=2e-2)


def test_flex_attention():
    """Attention by a template with the program's own mask and scores, whose blocks that see nothing are left out."""
    attention = pytest.importorskip("torch.nn.attention.flex_attention")

    def seen(batch, head, row, column):
        return (row >= column) & (row - column < 100)

    def biased(score, batch, head, row, column):
        return score - 0.05 * (row - column)

    rows, generator = 256, torch.Generator().manual_seed(3)
    query = torch.randn(1, 4, rows, 32, generator=generator)
    key, value = (torch.randn(1, 2, rows, 32, generator=generator) for _ in range(2))
    blocks = attention.create_block_mask(seen, None, None, rows, rows, device="cuda")
    flex = torch.compile(attention.flex_attention)
    place = torch.arange(rows)
    distance = place[:, None] - place[None, :]
    bias = torch.where(seen(0, 0, place[:, None], place[None, :]), -0.05 * distance, float("-inf"))

    def composed(query, key, value):
        key, value = (t.repeat_interleave(2, 1) for t in (key, value))
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias)

    def compiled(query, key, value):
        return flex(query, key, value, score_mod=biased, block_mask=blocks, enable_gqa=True)

    found = []
    for device, attend in (("cpu", composed), ("cuda", compiled)):
        inputs = [t.to(device).requires_grad_() for t in (query, key, value)]
        result = attend(*inputs)
        found.append([t.cpu() for t in (result, *torch.autograd.grad(result.square().sum(), inputs))])
    for actual, expected in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(actual, expected, rtol=5e-3, atol=5e-3)


def test_compiled_calls_of_c_functions(tmp_path):
    """AOTInductor and `cpp_wrapper` call operators by C functions of torch's, not through its dispatcher."""
    if shutil.which("g++") is None or not Path(torch.__file__).with_name("include").is_dir():
        pytest.skip("needs g++ and torch's headers")
    if cpp_extension.CUDA_HOME is None:
        pytest.skip("needs a CUDA toolkit, or nvidia-cuda-nvcc from PyPI")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, 4, 3)
            self.linear = torch.nn.Linear(64, 5)

        def forward(self, x):
            y = F.pad(self.linear(self.convolution(x).relu().flatten(1)), (1, 2), "reflect")
            return y, y.topk(2)[0], y.sort(1)[0], y.cumsum(1)

    torch.manual_seed(0)
    net, x = Net().cuda(), torch.randn(2, 3, 6, 6, device="cuda")
    with torch.no_grad():
        program = torch.export.export(net, (x,))
        package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "net.pt2"))
        results = {"AOTInductor": torch._inductor.aoti_load_package(package)(x)}
        with torch._inductor.config.patch(cpp_wrapper=True):
            results["cpp_wrapper"] = torch.compile(net)(x)
        for name, actual in results.items():
            torch.testing.assert_close(tuple(actual), net(x), rtol=1e-4, atol=1e-5, msg=lambda m, name=name: f"{name}: {m}")


def test_benchmarks_do_not_empty_a_cache_that_is_not_there():
    benchmarking = pytest.importorskip("torch._inductor.runtime.benchmarking")
    x = torch.randn(100, device="cuda")
    for name in ("InductorBenchmarker", "TritonBenchmarker"):
        benchmarker = getattr(benchmarking, name)()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        assert benchmarker.benchmark_gpu(lambda: x + x, rep=5) > 0
        assert torch.cuda.max_memory_allocated() - before < 1 << 20


def gradient(function, x, *rest):
    x = x.detach().requires_grad_()
    result = function(x, *rest)
    return torch.autograd.grad(result, x, torch.randn_like(result))


RUNNING = torch.tensor([[0.5, -0.5], [1.5, 0.5]])
LAID_OUT = {
    "svd": torch.linalg.svd,
    "eig": lambda x: torch.linalg.eig(x @ x.mT),
    "fftn": torch.fft.fftn,
    "rfftn": torch.fft.rfftn,
    "irfftn": lambda x: torch.fft.irfftn(torch.complex(x, x)),
    "transform of two dimensions": lambda x: torch.fft.rfft2(x, dim=(1, 0)),
    "combinations": lambda x: torch.combinations(x[0, 0, 0]),
    "log_sigmoid": lambda x: torch.ops.aten.log_sigmoid_forward(x),
    "batch_norm with running statistics": lambda x: torch.ops.aten.native_batch_norm(x, None, None, *RUNNING.cuda(), False, 0.1, 1e-5),
    "log_sigmoid of a transpose": lambda x: F.logsigmoid(x.mT),
    "batch_norm of a transpose": lambda x: F.batch_norm(x.mT, None, None, training=True),
    "dropout of a transpose": lambda x: torch.ops.aten.native_dropout_backward(x.mT, x.mT > 0, 2.0),
    "channel_shuffle": lambda x: F.channel_shuffle(x.reshape(3, 4, 4, 3).to(memory_format=torch.channels_last), 2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.reshape(3, 8, 3, 2).to(memory_format=torch.channels_last), 2),
    "reflection": lambda x: F.pad(x.to(memory_format=torch.channels_last), (1, 1, 1, 1), "reflect"),
    "replication": lambda x: F.pad(x.to(memory_format=torch.channels_last), (1, 1, 1, 1), "replicate"),
    "replication of volumes": lambda x: F.pad(x[..., None].to(memory_format=torch.channels_last_3d), (1,) * 6, "replicate"),
    "gradient of a reflection": lambda x: gradient(F.pad, x.to(memory_format=torch.channels_last), (1, 1, 1, 1), "reflect"),
    "gradient of a replication": lambda x: gradient(F.pad, x.to(memory_format=torch.channels_last), (1, 1, 1, 1), "replicate"),
    "gradient of batch_norm": lambda x: gradient(F.batch_norm, x.mT, None, None, None, None, True),
    "roll": lambda x: x.to(memory_format=torch.channels_last).roll(1, 1),
    "max_unpool2d": lambda x: F.max_unpool2d(*F.max_pool2d(x.to(memory_format=torch.channels_last), 2, return_indices=True), 2),
}


@pytest.mark.parametrize("name", LAID_OUT)
def test_results_lie_where_compiled_code_expects_them(name):
    """torch's shape functions for CUDA are the reference."""
    fake_utils = pytest.importorskip("torch._subclasses.fake_utils")
    x = torch.randn(3, 2, 4, 6, device="cuda")
    with fake_utils.CrossRefFakeMode(check_strides=True, check_aliasing=False):
        LAID_OUT[name](x)


@pytest.mark.parametrize("name", ["svd", "rfftn"])
def test_compiled_code_accepts_the_layout_of_results(name):
    x = torch.randn(3, 2, 4, 6, device="cuda")
    for found, expected in zip(torch.compile(LAID_OUT[name])(x), LAID_OUT[name](x), strict=True):
        torch.testing.assert_close(found, expected)


TUNED = """
import re, torch, margay.torch
x = torch.randn(300, 5000, device="cuda")
function = torch.compile(lambda x: x.sin().sum(1))
for _ in range(2):
    torch.testing.assert_close(function(x), x.sin().sum(1), rtol=1e-4, atol=1e-3)
kernels, launches = re.search(r"(\\d+) kernels? ran on margay: (\\d+) launch", margay.torch.summary()).groups()
print(kernels, int(launches) == 2)
"""


@pytest.mark.parametrize(("which", "searches"), [("first", True), ("all", False)])
def test_the_compiler_takes_the_first_configuration_that_compiles(python, tmp_path, which, searches):
    env = {"MARGAY_AUTOTUNE": which, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    begin = f"import margay\nmargay.enable()\nimport torch._inductor.config\ntorch._inductor.config.coordinate_descent_tuning = {searches}"
    words = python(begin + TUNED, env=env).split()
    assert words == ["1", str(which == "first")], words
