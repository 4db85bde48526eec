"""Processes that exit while threads still use the `cuda` device keep the program's exit code and print no error."""

import pytest

BEGIN = "import margay\nmargay.enable()\nimport ctypes, threading, time, torch\n"

DAEMONS = """
net = torch.nn.Linear(4, 4).cuda()
at_work = threading.Barrier(4)

def compute():
    torch.ones(1000, device="cuda").sum().item()
    at_work.wait()
    while True:
        (torch.ones(1000, device="cuda") * 2).sum().item()

def train():
    net(torch.ones(2, 4, device="cuda")).sum().backward()
    at_work.wait()
    while True:
        net(torch.ones(2, 4, device="cuda")).sum().backward()

for work in (compute, compute, train):
    threading.Thread(target=work, daemon=True).start()
at_work.wait()
"""

# Every node of the graph needs the interpreter.
GRAPH = """
x = torch.zeros(1 << 14, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x
    for _ in range(50):
        y = y.sin()
for _ in range(10):
    graph.replay()
"""

# Like a thread of gloo, it was not created by Python and needs the interpreter.
THREAD_OF_C = """
libc = ctypes.CDLL(None)

def work(_):
    x = torch.ones(1000, device="cuda")
    begun.set()
    for _ in range(200):
        x = x * 2

begun = threading.Event()
work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work)
thread = ctypes.c_ulong()
assert libc.pthread_create(ctypes.byref(thread), None, work, None) == 0
begun.wait()
"""


@pytest.mark.parametrize("program", [DAEMONS, GRAPH, THREAD_OF_C], ids=["daemons", "graph", "thread_of_c"])
def test_threads_that_compute_do_not_disturb_the_end(python, program):
    done = python(BEGIN + program + "print('end')\nraise SystemExit(7)", check=False)
    assert (done.returncode, done.stdout) == (7, "end\n"), done.stderr
    assert "terminate" not in done.stderr and "panicked" not in done.stderr, done.stderr


# torch frees the shared memory in a C++ destructor, after thread-local destructors.
PRODUCER = """
import torch.multiprocessing

def produce(queue, taken):
    queue.put(torch.arange(5.0, device="cuda"))
    taken.wait()

if __name__ == "__main__":
    spawn = torch.multiprocessing.get_context("spawn")
    queue, taken = spawn.Queue(), spawn.Event()
    process = spawn.Process(target=produce, args=(queue, taken))
    process.start()
    tensor = queue.get()
    print(tensor.sum().item())
    taken.set()
    process.join()
    del tensor
    raise SystemExit(process.exitcode)
"""


def test_a_process_ends_that_shares_memory(python):
    done = python(BEGIN + PRODUCER, check=False)
    assert (done.returncode, done.stdout) == (0, "10.0\n") and "panicked" not in done.stderr, done.stderr
