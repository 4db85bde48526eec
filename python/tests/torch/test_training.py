"""Training on `cuda` gives the losses of training on `cpu`, bit by bit."""

import threading

import pytest
import torch
from torch import nn
from torch.nn import functional as F


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(32, 10)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1), device=x.device)
        return self.out(self.layers(self.embed(x), mask=mask, is_causal=True).mean(1))


def mlp():
    return nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10)), torch.randn(32, 20)


def convnet():
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, groups=4, stride=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    return net, torch.randn(8, 3, 16, 16)


def transformer():
    return Transformer(), torch.randint(0, 50, (8, 12))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layers = getattr(nn, kind)(12, 24, 2, bidirectional=kind != "RNN")
        self.out = nn.LazyLinear(10)

    def forward(self, x):
        return self.out(self.layers(x)[0].mean(0))


def recurrent(kind):
    def make():
        net, x = Recurrent(kind), torch.randn(6, 16, 12)
        net(x)
        return net, x

    return make


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "adamw of lists": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
    "fused adamw": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
}


def losses(make, optimizer, device, steps=8):
    torch.manual_seed(3)
    net, x = make()
    y = torch.randint(0, 10, (32,))[: net(x).shape[0]]
    net, x, y = net.to(device), x.to(device), y.to(device)
    optimizer = OPTIMIZERS[optimizer](net.parameters())
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < found[0]
    return found


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("make", [mlp, convnet, transformer])
def test_losses_are_those_of_the_cpu(make, optimizer):
    assert losses(make, optimizer, "cuda") == losses(make, optimizer, "cpu")


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers(kind):
    assert losses(recurrent(kind), "sgd", "cuda") == losses(recurrent(kind), "sgd", "cpu")


def test_weights_made_on_the_device_are_those_of_the_cpu_with_the_same_seed():
    weights = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(5)
        net = nn.Sequential(nn.Linear(30, 40, device=device), nn.Conv2d(3, 4, 3, device=device), nn.Embedding(7, 8, device=device))
        weights.append([p.detach().cpu() for p in net.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_and_gradient_scaling(dtype):
    found = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(4)
        net, x = mlp()
        net, x = net.to(device), x.to(device)
        optimizer, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler(device)
        steps = []
        for _ in range(4):
            optimizer.zero_grad()
            with torch.autocast(device, dtype=dtype):
                out = net(x)
                assert net[0](x).dtype is dtype
                loss = out.float().square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            steps.append(loss.item())
        found.append(steps)
    assert found[1] == pytest.approx(found[0], rel=1e-2) and found[1][-1] < found[1][0]


def test_checkpointing_repeats_the_random_numbers():
    from torch.utils.checkpoint import checkpoint

    net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1)).cuda()
    x = torch.randn(4, 8, device="cuda", requires_grad=True)
    state = torch.cuda.get_rng_state()
    (expected,) = torch.autograd.grad(net(x).sum(), x)
    torch.cuda.set_rng_state(state)
    (actual,) = torch.autograd.grad(checkpoint(net, x, use_reentrant=False).sum(), x)
    assert torch.equal(actual, expected)
    torch.cuda.set_rng_state(state)
    checkpoint(net, x, use_reentrant=True).sum().backward()
    assert torch.equal(x.grad, expected)


def test_data_loader_pins_memory():
    data = torch.utils.data.TensorDataset(torch.randn(40, 4), torch.arange(40))
    total = 0
    for x, y in torch.utils.data.DataLoader(data, 8, pin_memory=True, num_workers=1):
        assert x.is_pinned()
        total += y.to("cuda", non_blocking=True).sum()
    assert total.item() == sum(range(40))


def test_backward_passes_run_on_the_thread_that_asks_for_them():
    def note(grad):
        seen.append(threading.get_ident())
        if len(seen) > 1:
            raise ValueError("the second time")

    seen, x = [], torch.ones(2, device="cuda", requires_grad=True)
    (y := x * 2).register_hook(note)
    y.sum().backward(retain_graph=True)
    with pytest.raises(ValueError, match="the second time"):
        y.sum().backward()
    assert seen == [threading.get_ident()] * 2 and torch._C._is_multithreading_enabled()


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_have_second_derivatives_without_cudnn(layer):
    def second(device):
        torch.manual_seed(3)
        net, x = layer(3, 2), torch.rand(2, 1, 3)
        net, x = net.to(device), x.to(device).requires_grad_()
        with torch.backends.cudnn.flags(enabled=False):
            (first,) = torch.autograd.grad(net(x)[0].square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0].cpu()

    torch.testing.assert_close(second("cuda"), second("cpu"))
