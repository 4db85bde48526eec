"""torch does not require NumPy, so margay does not either."""

PROGRAM = """
import sys, warnings
sys.modules["numpy"] = None  # as if it were not installed
warnings.simplefilter("ignore")
import torch

def losses(device):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1)).to(device)
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(1)).to(device)
    optimizer = torch.optim.AdamW(net.parameters())
    seen = []
    for _ in range(3):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen

assert losses("cuda") == losses("cuda")
torch.manual_seed(3)
first = torch.randn(5, device="cuda")
torch.manual_seed(3)
assert first.equal(torch.randn(5, device="cuda")) and first.equal(torch.randn(5, device="cuda")) is False
assert torch.rand(3, device="cuda", generator=torch.Generator("cuda").manual_seed(2)).shape == (3,)
assert torch.ones(3, device="cuda").tolist() == [1.0, 1.0, 1.0]
print(repr(torch.arange(3, device="cuda")))
"""


def test_training_and_random_numbers_without_numpy(python):
    out = python("import margay\nmargay.enable()\n" + PROGRAM)
    assert out.strip() == "tensor([0, 1, 2], device='cuda:0')"
