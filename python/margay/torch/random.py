"""Random numbers of device `cuda`, from torch's CPU generators.

A CUDA generator is a seed and an offset. Each such pair always produces the same numbers:

* At offset 0, they are those of a CPU generator with this seed, so a program draws the same numbers on `cuda` as on `cpu`.
* After every operator, the CPU generator's state is stored under the new pair, for the first `_KEPT` operators of a seed. The new offset
  depends on that state, so different histories do not share a pair.
* Any other pair seeds the CPU generator by both of its numbers.

So `manual_seed`, `get_rng_state`, `set_rng_state` and `fork_rng` work with the state that torch itself keeps.
"""

from __future__ import annotations

import ctypes
import hashlib
import zlib
from collections import OrderedDict

import torch

from margay.torch import capture

_KEPT = 2048  # states for one seed, of 5 KB each
_SEEDS = 4
_states: OrderedDict[int, dict] = OrderedDict()
_generator = torch.Generator()  # used under the interpreter's lock only
_captured = torch.Generator()
_own = torch.default_generator
_replayed = torch.Generator()  # of the nodes of graphs, which may not ask CUDA's generators


def _replays() -> bool:
    return bool(capture.STATE.special) and getattr(capture.STATE.inside, "replays", False)


def draw_seed(d: int) -> int:
    """The seed for the numbers of one replay of a graph, drawn from the device's generator."""
    generator = shadow(None, d)
    seed = int(torch.randint(1 << 62, (), generator=generator))
    advance(None, d, generator)
    return seed


def seed_replay(seed: int) -> None:
    _replayed.manual_seed(seed)


def _of(generator, d):
    if generator is None:
        torch.cuda.init()
        return torch.cuda.default_generators[d]
    if generator.device.type != "cuda":
        raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{generator.device.type}'")
    return generator


def _stored(generator):
    """The state that belongs to the pair of a generator; `None` if none was stored."""
    return _states.get(generator.initial_seed(), {}).get(generator.get_offset())


def _fresh(generator) -> torch.Generator:
    """A CPU generator for a pair without a stored state."""
    seed, offset = generator.initial_seed(), generator.get_offset()
    if offset:
        digest = hashlib.blake2b(f"{seed}:{offset}".encode(), digest_size=8).digest()
        seed = int.from_bytes(digest, "little")
    return torch.Generator().manual_seed(seed)


def shadow(generator, d: int):
    """Returns a CPU generator with the next numbers of the CUDA generator (`None`: the device's own)."""
    if _replays():
        return _replayed
    if capture.STATE.graphs:
        return _captured
    generator = _of(generator, d)
    state = _stored(generator)
    return _fresh(generator) if state is None else torch.Generator().set_state(state)


def advance(generator, d: int, copy) -> None:
    """Records that an operator has drawn from `copy`, which `shadow` returned for the same generator."""
    if not capture.STATE.graphs and not _replays():
        _advance(_of(generator, d), copy.get_state())


def _bytes(state) -> bytes:
    """The bytes of a generator's state; NumPy, which torch does not require, may be absent."""
    return ctypes.string_at(state.data_ptr(), state.numel())


def _advance(generator, state) -> None:
    seed, offset = generator.initial_seed(), generator.get_offset()
    after = offset + 4 + 4 * (zlib.crc32(_bytes(state)) >> 8)
    kept = _states.get(seed)
    if kept is None:
        kept = _states[seed] = {}
        if len(_states) > _SEEDS:
            _states.popitem(last=False)
    else:
        _states.move_to_end(seed)
    if len(kept) < _KEPT:
        kept[after] = state
    generator.set_offset(after)


class seeded:
    """Makes operators that draw from the CPU's default generator draw the numbers of the device's generator."""

    def __init__(self, d: int):
        # The CPU generator that lasts, for what a graph captures or replays.
        self.lasting = _replayed if _replays() else _captured if capture.STATE.graphs else None
        self.generator = _of(None, d) if self.lasting is None else None

    def __enter__(self):
        state = _stored(self.generator) if self.lasting is None else None
        self.before = _own.get_state()
        if state is None:
            state = (_fresh(self.generator) if self.lasting is None else self.lasting).get_state()
        _own.set_state(state)

    def __exit__(self, *error):
        after = _own.get_state()
        _own.set_state(self.before)
        if self.lasting is not None:
            self.lasting.set_state(after)
        else:
            _advance(self.generator, after)
