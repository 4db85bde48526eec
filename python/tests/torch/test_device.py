"""What the device `cuda` promises beside its numbers."""

import ctypes
import io

import numpy
import pytest
import torch
from torch.nn import functional as F


def test_tensors_of_two_devices_are_torchs_usual_error():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(2, device="cuda") + torch.ones(2)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device.*aten::mm"):
        torch.ones(2, 2, device="cuda") @ torch.ones(2, 2)


def test_scalars_and_indices_may_be_on_the_cpu():
    x = torch.arange(4.0, device="cuda")
    assert (x * torch.tensor(2.0)).tolist() == (torch.tensor(2.0) * x).tolist() == [0, 2, 4, 6]
    assert x[torch.tensor([1, 3])].tolist() == [1, 3]
    x[torch.tensor([0])] = 9
    assert x.tolist() == [9, 1, 2, 3]


def test_errors_of_the_cpu_name_the_operator():
    with pytest.raises(IndexError) as error:
        torch.ones(2, device="cuda")[torch.tensor([5], device="cuda")]
    assert "aten::index.Tensor" in "".join(error.value.__notes__)


def test_views_share_memory():
    x = torch.zeros(4, 6, device="cuda")
    x[1:3, ::2].add_(1)
    x.t()[0].mul_(5)
    assert x.sum().item() == 6 + 2 * 4
    assert x.view(24).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.bool, torch.complex64])
def test_copies_between_devices_and_types(dtype):
    x = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    y = x.to("cuda").to(dtype)
    assert torch.equal(y.cpu(), x.to(dtype)) and torch.equal(y.t().contiguous().cpu(), x.to(dtype).t())
    z = torch.empty(3, 2, device="cuda").copy_(x.t(), non_blocking=True)
    assert torch.equal(z.cpu(), x.t())
    expanded = torch.ones(3, 1, device="cuda").expand(3, 4)
    assert torch.equal(expanded.clone().cpu(), torch.ones(3, 4))


def test_conjugates_and_negatives_are_resolved():
    x = torch.tensor([[1 + 2j, 3 - 1j], [0 + 1j, 2 + 2j]])
    y = x.cuda()
    assert torch.equal((y.conj() @ y).cpu(), x.conj() @ x)
    assert torch.equal(y.conj().imag.clone().cpu(), x.conj().imag)
    assert torch.equal(torch.empty(2, 2, device="cuda").copy_(y.conj().imag).cpu(), x.conj().imag)


def test_out_arguments_are_written_and_resized():
    x = torch.arange(6.0, device="cuda").view(2, 3)
    exact, empty = torch.empty(2, 3, device="cuda"), torch.empty(0, device="cuda")
    where = exact.data_ptr()
    assert torch.add(x, x, out=exact) is exact and exact.data_ptr() == where
    torch.add(x, x, out=empty)
    assert torch.equal(exact, empty) and empty.tolist() == [[0, 2, 4], [6, 8, 10]]
    with pytest.warns(UserWarning, match="resized"):
        torch.add(x, x, out=(large := torch.empty(50, device="cuda")))
    with pytest.warns(UserWarning, match="resized"):
        torch.add(x, x, out=(small := torch.empty(2, device="cuda")))
    assert torch.equal(large, exact) and torch.equal(small, exact)


def test_random_numbers_follow_their_seeds():
    torch.cuda.manual_seed(7)
    first = [torch.rand(3, device="cuda"), torch.randn(40, device="cuda"), torch.randperm(9, device="cuda")]
    state = torch.cuda.get_rng_state()
    later = F.dropout(torch.ones(100, device="cuda"))
    torch.cuda.set_rng_state(state)
    assert torch.equal(F.dropout(torch.ones(100, device="cuda")), later)
    torch.manual_seed(7)
    again = [torch.rand(3, device="cuda"), torch.randn(40, device="cuda"), torch.randperm(9, device="cuda")]
    assert all(map(torch.equal, first, again))
    with torch.random.fork_rng(devices=[0]):
        torch.manual_seed(1)
        torch.rand(5, device="cuda")
    assert torch.equal(F.dropout(torch.ones(100, device="cuda")), later)


def test_exponential_numbers_are_not_zero():
    near, far = (torch.empty(6000, dtype=torch.float16, device=device) for device in ("cuda", "cpu"))
    for x in near, far:
        torch.manual_seed(20)
        x.exponential_()
    assert torch.equal(near.cpu(), far.clamp(min=2**-24)) and near.min() > 0  # torch 2.15 draws a zero on the CPU


def test_random_numbers_come_back_from_a_state_that_is_long_past():
    from margay.torch import random

    generator = torch.Generator("cuda").manual_seed(3)
    for _ in range(random._KEPT + 10):
        torch.rand(1, device="cuda", generator=generator)
    state = generator.get_state()
    expected = [torch.rand(3, device="cuda", generator=generator) for _ in range(3)]
    generator.set_state(state)
    assert all(torch.equal(torch.rand(3, device="cuda", generator=generator), e) for e in expected)
    assert not torch.equal(expected[0], expected[1])


def test_generators_are_of_their_device():
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator"):
        torch.rand(3, device="cuda", generator=torch.Generator())
    generators = [torch.Generator("cuda").manual_seed(4) for _ in range(2)]
    a, b = (torch.multinomial(torch.ones(50, device="cuda"), 9, generator=g) for g in generators)
    assert torch.equal(a, b)


def test_memory_is_counted():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    x = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4 << 20
    y = x + 1
    assert torch.cuda.memory_allocated() - before == 8 << 20
    del x, y
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() >= before + (8 << 20)
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def test_streams_and_events():
    stream, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    with torch.cuda.stream(stream):
        x = torch.ones(1000, device="cuda") * 2
        end.record()
    torch.cuda.current_stream().wait_event(end)
    end.synchronize()
    assert x.sum().item() == 2000 and start.elapsed_time(end) >= 0
    assert stream.query() and not torch.cuda.is_current_stream_capturing()


def test_a_graph_computes_when_it_is_replayed():
    x, total = torch.ones(4, device="cuda"), torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x * 3).relu()
        total += y.cumsum(0)
    assert total.tolist() == [0] * 4
    for _ in range(2):
        graph.replay()
    assert total.tolist() == [6, 12, 18, 24]
    x.fill_(2)
    graph.replay()
    assert y.tolist() == [6] * 4 and total.tolist() == [12, 24, 36, 48]


def test_a_capture_writes_nothing():
    """Results at capture may lie where memory was freed whose contents a graph of the same pool reads when it is replayed."""
    pool = torch.cuda.graph_pool_handle()
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first, pool=pool):
        x = torch.full((1000,), 3.0, device="cuda")
    first.replay()
    where = x.data_ptr()
    with torch.cuda.graph(second, pool=pool):
        y = x + 1
        del x
        z = y * 2
    assert z.data_ptr() == where
    second.replay()
    assert y.unique().tolist() == [4] and z.unique().tolist() == [8]


def test_a_captured_operator_has_the_operands_of_the_captured_ones_before():
    rows, at = torch.arange(6.0, device="cuda").view(3, 2), torch.full((2,), 1 << 40, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        at.fill_(2)
        found = rows[at]
    assert at.tolist() == [1 << 40] * 2
    graph.replay()
    assert at.tolist() == [2, 2] and found.tolist() == [[4, 5]] * 2


def test_replays_draw_numbers_that_follow_the_seed():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x, y = torch.rand(50, device="cuda"), F.dropout(torch.ones(50, device="cuda"))
    found = []
    for seed in (5, None, 5):
        if seed is not None:
            torch.cuda.manual_seed(seed)
        graph.replay()
        found.append((x.tolist(), y.tolist()))
    assert found[0] == found[2] != found[1] and found[0][1] != found[1][1]


def test_a_node_of_a_graph_that_fails_is_an_error_of_the_next_operator():
    rows, at = torch.arange(6.0, device="cuda").view(3, 2), torch.zeros(2, dtype=torch.long, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = rows[at]
    at.fill_(7)
    graph.replay()
    with pytest.raises(RuntimeError, match="a node of a CUDA graph failed: index 7 is out of bounds"):
        found.tolist()
    at.fill_(2)
    graph.replay()
    assert found.tolist() == [[4, 5]] * 2


def test_drivers_of_singular_values():
    x = torch.randn(4, 3)
    for driver in (None, "gesvd", "gesvdj", "gesvda"):
        u, s, v = torch.linalg.svd(x.cuda(), full_matrices=False, driver=driver)
        torch.testing.assert_close((u @ s.diag() @ v).cpu(), x)
        torch.testing.assert_close(torch.linalg.svdvals(x.cuda(), driver=driver), s)
    with pytest.raises(RuntimeError, match="unknown svd driver other"):
        torch.linalg.svd(x.cuda(), driver="other")


JITERATED = "template <typename T> T blend(T x, T y, T weight) { return x + weight * (y - x); }"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.complex64])
def test_functions_that_torch_compiles(dtype):
    """`torch.cuda.jiterator` compiles element-wise functions with NVRTC."""
    from torch.cuda import jiterator

    blend = jiterator._create_jit_fn(JITERATED, weight=2)
    x, y = torch.arange(90).to(dtype), torch.arange(90, 0, -1).to(dtype)
    assert torch.equal(blend(x.cuda(), y.cuda()).cpu(), x + 2 * (y - x))
    assert torch.equal(blend(x.cuda().view(3, 30).t(), y.cuda()[:3], weight=1).cpu(), y[:3].expand(30, 3))
    both = jiterator._create_multi_output_jit_fn(
        "template <typename T> void both(T x, T y, T& sum, T& difference) { sum = x + y; difference = x - y; }", num_outputs=2
    )
    total, difference = both(x.cuda()[::2], y.cuda()[::2])
    assert torch.equal(total.cpu(), (x + y)[::2]) and torch.equal(difference.cpu(), (x - y)[::2])


def test_a_graph_refuses_what_needs_values():
    x = torch.ones(4, device="cuda")
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing.*aten::nonzero"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.nonzero()
    assert (x + 1).tolist() == [2] * 4


@pytest.mark.parametrize("copy", [lambda x: x.cpu(), lambda x: x.copy_(torch.ones(3))], ids=["to the host", "from the host"])
def test_a_graph_refuses_copies_that_wait(copy):
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError, match="capturing"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            copy(x)
    assert (x + 1).tolist() == [2, 2, 2]


def test_graphed_layers_train():
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).cuda()
    x = torch.randn(3, 6, device="cuda")
    expected = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    graphed = torch.cuda.make_graphed_callables(net, (torch.randn(3, 6, device="cuda"),))
    graphed(x).square().sum().backward()
    assert all(torch.equal(p.grad, e) for p, e in zip(net.parameters(), expected, strict=True))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fused_attention_is_the_cpus(causal, dtype):
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        q, k, v = (torch.randn(2, 3, 17, 16).to(device, dtype).requires_grad_() for _ in range(3))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        found.append([out, *torch.autograd.grad(out.sum(), (q, k, v))])
    for on_cpu, on_cuda in zip(*found, strict=True):
        if dtype is torch.float32:
            assert torch.equal(on_cpu, on_cuda.cpu())
        else:
            torch.testing.assert_close(on_cpu, on_cuda.cpu(), rtol=2e-2, atol=2e-2)


def test_attention_with_dropout_repeats_its_mask_in_the_backward_pass():
    q = torch.randn(1, 2, 8, 8, device="cuda", dtype=torch.float64, requires_grad=True)

    def attention(q):
        torch.manual_seed(6)
        return F.scaled_dot_product_attention(q, q, q, dropout_p=0.3)

    assert torch.autograd.gradcheck(attention, q, nondet_tol=0)


def test_what_ran_in_inference_mode_trains():
    q = torch.randn(1, 2, 8, 16, device="cuda", requires_grad=True)
    norm = torch.nn.BatchNorm2d(2).cuda()
    for dtype in (torch.float32, torch.bfloat16):
        with torch.inference_mode():
            F.scaled_dot_product_attention(*(q.to(dtype) for _ in range(3)))
            norm(q)
        F.scaled_dot_product_attention(*(q.to(dtype) for _ in range(3))).sum().backward()
        norm(q).sum().backward()
    assert q.grad.isfinite().all()


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_dropout_is_the_cpus_rounded_once(p, dtype):
    x, found = torch.randn(5, 6).to(dtype), []
    for tensor in (x.float(), x.cuda()):
        for view in (tensor, tensor.t(), tensor[:, ::2]):
            torch.manual_seed(4)
            result, mask = torch.native_dropout(view, p, True)
            assert result.stride() == mask.stride() == torch.empty_like(view).stride()
            found.append((result.to("cpu", dtype), mask.cpu()))
    for on_cpu, on_cuda in zip(found[:3], found[3:], strict=True):
        assert all(torch.equal(*pair) for pair in zip(on_cpu, on_cuda, strict=True))


def test_attention_without_dropout_draws_no_numbers():
    q = torch.randn(1, 2, 8, 16, device="cuda")
    before = torch.cuda.get_rng_state()
    torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert torch.equal(torch.cuda.get_rng_state(), before)
    torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
    assert not torch.equal(torch.cuda.get_rng_state(), before)


@pytest.mark.parametrize("window", [None, 3])
def test_attention_over_sequences_of_different_lengths(window):
    q, k, v = (torch.randn(20, 4, 8, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
    edges = (0, 7, 7, 20)
    begins = torch.tensor(edges, dtype=torch.int32, device="cuda")
    out, lse, state, unused, _ = torch.ops.aten._flash_attention_forward(
        q, k, v, begins, begins, 13, 13, 0.0, True, False, window_size_left=window, window_size_right=0
    )
    mask = torch.ones(20, 20, dtype=torch.bool).tril()
    if window is not None:
        mask &= mask.triu(-window)
    parts = []
    for begin, end in zip(edges, edges[1:], strict=False):
        part = (t[begin:end].float().transpose(0, 1) for t in (q, k, v))
        parts.append(F.scaled_dot_product_attention(*part, attn_mask=mask[: end - begin, : end - begin].cuda()).transpose(0, 1))
    expected = torch.cat(parts)
    torch.testing.assert_close(out.float(), expected, atol=2e-3, rtol=2e-3)
    assert lse.shape == (4, 20)
    grad = torch.randn_like(out)
    found = torch.ops.aten._flash_attention_backward(
        grad, q, k, v, out, lse, begins, begins, 13, 13, 0.0, True, state, unused, window_size_left=window, window_size_right=0
    )
    for actual, wanted in zip(found, torch.autograd.grad(expected, (q, k, v), grad.float()), strict=True):
        torch.testing.assert_close(actual, wanted, atol=5e-3, rtol=5e-3)


@pytest.mark.parametrize("mask", [0, 1, 2])
def test_efficient_attention_of_other_lengths(mask):
    q, k = torch.randn(2, 5, 3, 8, device="cuda", requires_grad=True), torch.randn(2, 9, 3, 8, device="cuda")
    out, lse, seed, offset, rows, keys = torch.ops.aten._efficient_attention_forward(q, k, k, None, None, None, None, None, 0.0, mask, True)
    seen = torch.ones(5, 9, dtype=torch.bool).tril({0: 9, 1: 0, 2: 4}[mask]).cuda()
    expected = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, k)), attn_mask=seen).transpose(1, 2)
    torch.testing.assert_close(out, expected)
    assert (rows, keys, lse.shape) == (5, 9, (2, 3, 32))
    grad = torch.randn_like(out)
    found = torch.ops.aten._efficient_attention_backward(grad, q, k, k, None, out, None, None, 5, 9, lse, 0.0, seed, offset, mask, False)
    torch.testing.assert_close(found[0], torch.autograd.grad(expected, q, grad)[0])


def test_cudnn_answers():
    assert torch.backends.cudnn.is_available() and torch.backends.cudnn.version() > 8000
    x, weight = torch.randn(2, 4, 9, 9), torch.randn(6, 2, 3, 3)
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=True):
        assert torch.equal(F.conv2d(x.cuda(), weight.cuda(), groups=2, padding=1).cpu(), F.conv2d(x, weight, groups=2, padding=1))
        out = torch.cudnn_convolution(x.cuda(), weight.cuda(), [1, 1], [2, 2], [1, 1], 2, False, True, False)
        assert torch.equal(out.cpu(), F.conv2d(x, weight, groups=2, padding=1, stride=2))


def test_sparse_tensors_are_added_to_dense_ones():
    dense, other = torch.arange(6.0).view(2, 3), torch.tensor([[0.0, 3, 0], [1, 0, 2]])
    for dims in (1, 2):  # values of rows and of elements
        sparse = other.cuda().to_sparse(dims)
        places = torch.zeros(10, device="cuda")
        place = places[2:8].view(2, 3)
        place.copy_(dense)
        place.add_(sparse, alpha=2)
        assert torch.equal(place.cpu(), dense + 2 * other)
        assert torch.equal(places[[0, 1, 8, 9]].cpu(), torch.zeros(4))
        assert torch.equal(torch.add(place, sparse).cpu(), dense + 3 * other)
        torch.add(place, sparse, out=place)
        assert torch.equal(place.cpu(), dense + 3 * other)
    place.mul_(sparse)
    assert torch.equal(place.cpu(), (dense + 3 * other) * other)


def test_results_of_sparse_operators_grow():
    x = torch.tensor([[0.0, 4, 9], [16, 0, 0]])
    for layout in (torch.sparse_coo, torch.sparse_csr):
        given = x.to_sparse(layout=layout).cuda()
        # Results in compressed rows have as many elements as before.
        for before in (torch.zeros(2, 3), torch.eye(2, 3), torch.ones(2, 3)) if layout is torch.sparse_coo else (x + x,):
            out = before.to_sparse(layout=layout).cuda()
            assert torch.sqrt(given, out=out) is out
            assert out.layout is layout and torch.equal(out.to_dense().cpu(), x.sqrt())
        held = given.values() if layout is torch.sparse_csr else given._values()
        given.sqrt_()
        assert held.tolist() == [2, 3, 4]
    product = x.to_sparse().cuda()
    product.mul_(torch.eye(2, 3).to_sparse().cuda() + product)
    assert torch.equal(product.to_dense().cpu(), x * (torch.eye(2, 3) + x))


def test_reductions_of_masked_sparse_tensors():
    x = torch.tensor([[0.0, 2, 5], [3, 0, 4]])
    mask = torch.tensor([[False, True, False], [True, False, True]])
    for layout in (torch.sparse_coo, torch.sparse_csr):
        given, shown = x.to_sparse(layout=layout).cuda(), mask.to_sparse(layout=layout).cuda()
        for reduction, expected in ((torch.masked.prod, [[2], [12]]), (torch.masked.sum, [[2], [7]])):
            assert reduction(given, dim=1, mask=shown, keepdim=True).to_dense().tolist() == expected
    row = torch.tensor([[0.0, 1, 2]]).to_sparse().cuda()
    assert torch._sparse_broadcast_to(row, (2, 3)).to_dense().tolist() == [[0, 1, 2]] * 2


def test_gradients_of_embeddings_may_be_sparse():
    table = torch.nn.Embedding(4, 2, sparse=True, device="cuda")
    with torch.no_grad():
        table.weight.copy_(torch.ones(4, 2))
    optimizer = torch.optim.SGD(table.parameters(), lr=0.5)
    table(torch.tensor([1, 3, 1], device="cuda")).sum().backward()
    optimizer.step()
    assert table.weight.tolist() == [[1, 1], [0, 0], [1, 1], [0.5, 0.5]]


def test_sparse_tensors():
    dense = torch.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])
    for layout in (torch.sparse_coo, torch.sparse_csr):
        x = dense.to_sparse(layout=layout).cuda()
        assert x.is_cuda and x.layout is layout and torch.equal(x.to_dense().cpu(), dense)
        assert torch.equal((x @ dense.t().cuda()).cpu(), dense @ dense.t())
    x = dense.to_sparse().cuda()
    x.add_(x)
    assert torch.equal((x + x).coalesce().to_dense().cpu(), 4 * dense)


def test_the_first_call_of_an_observer_sizes_its_statistics():
    x = torch.linspace(-2, 3, 12).reshape(4, 3)

    def observed(device):
        state = [torch.empty(0), torch.empty(0), torch.ones(1), torch.zeros(1, dtype=torch.int32)]
        state = [t.to(device) for t in state]
        on = torch.ones(1, dtype=torch.int64, device=device)
        results = [torch.fused_moving_avg_obs_fake_quant(x.to(device), on, on, *state, 0.01, -128, 127, 0, True, True) for _ in range(2)]
        return [t.cpu() for t in (*results, *state)]

    for found, expected in zip(observed("cuda"), observed("cpu"), strict=True):
        assert torch.equal(found, expected)


def test_quantized_and_nested_tensors():
    x = torch.tensor([-1.0, 0.25, 0.5])
    q = torch.quantize_per_tensor(x.cuda(), 0.25, 3, torch.qint8)
    assert q.is_cuda and q.int_repr().tolist() == [-1, 4, 5] and torch.equal(q.dequantize().cpu(), x)
    n = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], device="cuda")
    assert (n * 2).to_padded_tensor(0.0).sum().item() == 36


def test_types_that_the_cpu_computes_in_wider_ones():
    x = torch.tensor([3, 1, 2, 3], device="cuda")
    assert torch.histc(x, 3, 1, 4).tolist() == [1, 1, 2]
    a = torch.eye(3, dtype=torch.bfloat16, device="cuda")
    if hasattr(torch.ops.aten.mm, "dtype"):  # older releases lack it
        assert torch.equal(torch.mm(a, a, out_dtype=torch.float32), torch.eye(3, device="cuda"))


def test_exchange_with_other_libraries():
    x = torch.arange(5.0, device="cuda")
    assert torch.equal(torch.from_dlpack(x), x) and torch.from_dlpack(x).data_ptr() == x.data_ptr()
    assert x.__cuda_array_interface__["data"][0] == x.data_ptr()
    assert numpy.array_equal(x.cpu().numpy(), numpy.arange(5.0))
    with pytest.raises(TypeError, match="can't convert cuda"):
        x.numpy()


def test_saving_and_loading():
    buffer = io.BytesIO()
    torch.save({"x": torch.ones(3, device="cuda")}, buffer)
    buffer.seek(0)
    assert torch.load(buffer)["x"].is_cuda
    buffer.seek(0)
    assert not torch.load(buffer, map_location="cpu")["x"].is_cuda


def test_the_default_device_and_transforms():
    with torch.device("cuda"):
        assert torch.nn.Linear(2, 2)(torch.randn(3, 2)).is_cuda
    x = torch.randn(3, 4, device="cuda")
    assert torch.equal(torch.func.vmap(lambda r: (r * r).sum())(x), (x * x).sum(1))
    assert torch.equal(torch.func.grad(lambda r: (r**3).sum())(x), 3 * x**2)


def test_the_profiler_records_the_host():
    with pytest.warns(UserWarning, match="profiler") if not _profiled() else _nothing():
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as profile:
            torch.ones(4, device="cuda") + 1
    assert any(event.key == "aten::add" for event in profile.key_averages())


def _profiled():
    from margay.torch import profiling

    return profiling._said


def _nothing():
    import contextlib

    return contextlib.nullcontext()


def test_the_summary_counts_kernels():
    from margay.torch import account, summary

    triton = pytest.importorskip("triton")
    from kernels import add_kernel

    def launches():
        return account.kernels().get("add_kernel", (0,))[0]

    x = torch.ones(100, device="cuda")
    before = launches()
    for _ in range(3):
        add_kernel[(triton.cdiv(100, 64),)](x, x, torch.empty_like(x), 100, 64)
    torch.cuda.synchronize()
    assert launches() == before + 3
    assert account.kernels()["add_kernel"][1] > 0 and "add_kernel" in summary()


def test_composed_operators_with_code_of_their_own():
    exponents = torch.tensor([-3, 0, 5])
    values = torch.tensor([1.5, -2.0, 0.75])
    on_cuda = values.cuda().requires_grad_()
    result = torch.ldexp(on_cuda, exponents.cuda())
    result.sum().backward()
    assert result.tolist() == [1.5 / 8, -2.0, 24.0]
    assert on_cuda.grad.tolist() == [0.125, 1.0, 32.0]


def test_the_summary_counts_operators():
    from margay.torch import account, summary

    account.reset()
    x = torch.ones(3, device="cuda")
    for _ in range(5):
        x.lgamma()
    calls, seconds = account.operators()["aten::lgamma"]
    assert calls == 5 and seconds > 0 and "aten::lgamma" in summary()


def test_a_stream_sleeps_when_it_is_told_to():
    stream, event = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        event.record()
    event.synchronize()
    assert stream.query()


def test_what_torch_has_for_gpus_only_is_refused_by_name():
    x, weight = torch.ones(32, 32, device="cuda", dtype=torch.float16), torch.ones(32, 32, device="cuda", dtype=torch.int8)
    with pytest.raises(NotImplementedError, match="aten::_mixed_dtypes_linear"):
        torch._mixed_dtypes_linear(x, weight, x[0])


def test_operators_that_are_not_deterministic_on_cuda_alert():
    x = torch.randn(1, 2, 4, 4, device="cuda", requires_grad=True)
    w = torch.randn(5, 3, device="cuda", requires_grad=True)
    at, ones = torch.tensor([0, 0, 1], device="cuda"), torch.ones(3, device="cuda")
    grid = torch.zeros(1, 2, 2, 2, device="cuda")
    embedding_bag = lambda mode: F.embedding_bag(at[None], w, mode=mode).sum().backward()  # noqa: E731
    alerting = {
        "adaptive_avg_pool2d_backward_cuda": lambda: F.adaptive_avg_pool2d(x, 2).sum().backward(),
        "_histc_cuda with floating point input": lambda: torch.histc(x.detach(), 3),
        "median CUDA with indices output": lambda: x.median(0),
        "grid_sampler_2d_backward_cuda": lambda: F.grid_sample(x, grid, align_corners=False).sum().backward(),
        "_bincount_cuda": lambda: torch.bincount(at, weights=ones),
        "scatter_reduce_cuda_prod_": lambda: ones.scatter_reduce(0, at, ones, "prod"),
        "scatter_reduce_cuda_kernel": lambda: ones.scatter(0, at, ones, reduce="multiply"),
        "index_reduce_cuda": lambda: ones.index_reduce(0, at, ones, "mean"),
        "embedding_bag_backward_cuda_max": lambda: embedding_bag("max"),
    }
    torch.use_deterministic_algorithms(True)
    try:
        for name, call in alerting.items():
            with pytest.raises(RuntimeError, match=f"{name} does not have a deterministic implementation"):
                call()
        x.median(), torch.bincount(at), torch.histc(at, 3), embedding_bag("sum"), ones[ones > 0]
        for reduce in ("sum", "mean", "amax", "amin"):
            ones.scatter_reduce(0, at, ones, reduce)
        ones.scatter(0, at, ones), ones.scatter(0, at, ones, reduce="add")
        F.pad(x, (1, 1, 1, 1), "reflect").sum().backward()
        torch.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match="_histc_cuda .*does not have a deterministic implementation"):
            assert torch.histc(x.detach(), 3).sum() <= 32
    finally:
        torch.use_deterministic_algorithms(False)


def test_operators_that_wait_for_the_device_alert():
    x, pinned = torch.ones(3, device="cuda"), torch.ones(3).pin_memory()
    waiting = [x.sum().item, x.nonzero, x.unique, x.cpu, lambda: x.copy_(torch.ones(3)), lambda: x[0].tolist()]
    mask, rows, one, counts = x > 0, torch.tensor([0, 2]), x[0].clone(), torch.full((1,), 2, device="cuda")
    on_device = rows.cuda()
    # The number of true elements of a mask, indices that are on the host, and sums of counts are needed there.
    waiting += [lambda: x[mask], lambda: x[rows], lambda: x.index_put_((mask,), one), lambda: x.index_put_((rows,), one)]
    waiting += [lambda: x.repeat_interleave(counts), on_device.bincount]
    not_waiting = [lambda: x.index_put_((mask,), torch.tensor(1.0)), lambda: x[on_device], lambda: x.index_put_((on_device,), one)]
    not_waiting += [lambda: x.repeat_interleave(counts, output_size=6)]
    torch.cuda.set_sync_debug_mode("error")
    try:
        for call in waiting:
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                call()
        (x + 1).softmax(0).copy_(pinned, non_blocking=True)
        for call in not_waiting:
            call()
        torch.cuda.set_sync_debug_mode("warn")
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            assert x.sum().item() == 3
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_large_results_are_those_of_the_cpu():
    x = torch.arange(1 << 15) - 100
    for function in (lambda x: x + x, lambda x: x / 3, lambda x: x > 5, lambda x: x.float().exp(), lambda x: x.double() * 2.5, lambda x: x**2):
        for _ in range(2):  # the second is written in place
            expected, actual = function(x), function(x.cuda())
            assert actual.dtype is expected.dtype and torch.equal(actual.cpu(), expected)


def test_the_handle_of_cublas_computes():
    """cuBLAS documentation, "cublas<t>gemm": `C = alpha op(A) op(B) + beta C` with column-major matrices."""
    pytest.importorskip("numpy")
    handle = torch.cuda.current_blas_handle()
    name = next(line.split()[-1] for line in open("/proc/self/maps") if "/libcublas.so" in line)
    cublas = ctypes.CDLL(name)
    a, b, c = torch.arange(6.0, device="cuda").view(2, 3), torch.arange(12.0, device="cuda").view(3, 4), torch.ones(2, 4, device="cuda")
    alpha, beta = ctypes.c_float(2), ctypes.c_float(3)
    at = lambda t: ctypes.c_void_p(t.data_ptr())  # noqa: E731
    sizes = ctypes.c_void_p(handle), 0, 0, 4, 2, 3
    assert cublas.cublasSgemm_v2(*sizes, ctypes.byref(alpha), at(b), 4, at(a), 3, ctypes.byref(beta), at(c), 4) == 0
    assert torch.equal(c.cpu(), 2 * (a.cpu() @ b.cpu()) + 3)


def test_torch_without_the_package_says_what_is_missing(python):
    """As where `margay exec` starts a Python whose environment does not have margay: torch calls its own kernels."""
    text = "import torch\ntorch.arange(4, device='cuda') + 1"
    # Under `pytest --margay`, what the driver says of a program goes to the report of its test.
    reports = "MARGAY_PYTHON", "MARGAY_REPORTS", "MARGAY_LOG", "MARGAY_FORGIVE"
    done = python(text, before=("margay", "exec", "--", "env", *(f"--unset={name}" for name in reports)), check=False)
    assert done.returncode != 0
    assert "`pip install margay` in the environment of PyTorch" in done.stderr


def test_programs_override_operators():
    a = torch.tensor([1.0, -2.0], device="cuda")
    library = torch.library.Library("aten", "IMPL")
    library.impl("relu", lambda x: x + 10, "CUDA")
    assert torch.relu(a).tolist() == [11, 8]
    library._destroy()
    assert torch.relu(a).tolist() == [1, 0]


def test_operators_that_libraries_replace_fall_back_to_torchs():
    from margay.torch import operators

    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CompositeExplicitAutograd)
    x, y = torch.arange(12.0, device="cuda").view(3, 4), torch.empty(4, 3, device="cuda", dtype=torch.float16).t()
    calls = []

    def copy_(self, source, non_blocking=False):
        calls.append(source)
        return torch.ops.aten.copy_.default.redispatch(keys, self, source, non_blocking)

    library = torch.library.Library("aten", "IMPL")
    library.impl("copy_", copy_, "CUDA", **operators._ALLOWED)
    try:
        assert y.copy_(x) is y and len(calls) == 1
    finally:
        library._destroy()
    assert torch.equal(y.cpu().float(), x.cpu())
    assert torch.equal(torch.ops.aten.mul.Tensor.redispatch(keys, x, x).cpu(), x.cpu() ** 2)


def test_results_have_the_sizes_of_those_of_cuda():
    """Where CUDA's kernels yield more or less than the CPU's; torch's decompositions say so."""
    x, mean, var = torch.randn(4, 3, 5), torch.randn(3), torch.rand(3)
    aten = torch.ops.aten
    expected = F.batch_norm(x, mean, var)
    for norm in (aten.native_batch_norm, aten._native_batch_norm_legit):
        out, used_mean, used_invstd = norm(x.cuda(), None, None, mean.cuda(), var.cuda(), False, 0.1, 1e-5)
        torch.testing.assert_close(out.cpu(), expected)
        torch.testing.assert_close(used_mean.cpu(), mean)
        torch.testing.assert_close(used_invstd.cpu(), (var + 1e-5).rsqrt())
    half = aten.native_batch_norm(x.cuda().half(), None, None, mean.cuda(), var.cuda(), False, 0.1, 1e-5)
    assert [t.dtype for t in half] == [torch.float16, torch.float32, torch.float32]
    outs = {name: torch.empty(0, device="cuda") for name in ("out", "save_mean", "save_invstd")}
    aten.native_batch_norm.out(x.cuda(), None, None, mean.cuda(), var.cuda(), False, 0.1, 1e-5, **outs)
    torch.testing.assert_close([t.cpu() for t in outs.values()], [expected, mean, (var + 1e-5).rsqrt()])

    y, buffer = aten.log_sigmoid_forward(x.cuda())
    assert buffer.shape == (0,) and torch.equal(y.cpu(), F.logsigmoid(x))
    leaf, on_cpu = x.cuda().requires_grad_(), x.clone().requires_grad_()
    F.logsigmoid(leaf).sum().backward()
    F.logsigmoid(on_cpu).sum().backward()
    assert torch.equal(leaf.grad.cpu(), on_cpu.grad)
    outs = [torch.empty_like(x, device="cuda"), torch.empty(0, device="cuda")]
    aten.log_sigmoid_forward.output(x.cuda(), output=outs[0], buffer=outs[1])
    assert torch.equal(outs[0].cpu(), F.logsigmoid(x)) and outs[1].shape == (0,)
    empty = torch.ones(2, 0, 3, device="cuda", requires_grad=True)
    F.logsigmoid(empty).sum().backward()
    assert empty.grad.shape == (2, 0, 3)
