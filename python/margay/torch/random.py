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
_graphs = capture.STATE.graphs
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


def _stored(seed: int, offset: int):
    """The state that belongs to a pair; `None` if none was stored."""
    kept = _states.get(seed)
    return None if kept is None else kept.get(offset)


def _fresh(seed: int, offset: int) -> torch.Generator:
    """A CPU generator for a pair without a stored state."""
    if offset:
        digest = hashlib.blake2b(f"{seed}:{offset}".encode(), digest_size=8).digest()
        seed = int.from_bytes(digest, "little")
    return torch.Generator().manual_seed(seed)


#: CPU generators that were advanced last, by the seeds and offsets to which they belong: the next operator needs no copy of their states.
_live: dict[tuple, torch.Generator] = {}


def shadow(generator, d: int):
    """Returns a CPU generator with the next numbers of the CUDA generator (`None`: the device's own)."""
    if _replays():
        return _replayed
    if _graphs:
        return _captured
    if generator is None or generator.device.type != "cuda":
        generator = _of(generator, d)
    pair = generator.initial_seed(), generator.get_offset()
    if (live := _live.pop(pair, None)) is not None:
        return live
    state = _stored(*pair)
    return _fresh(*pair) if state is None else torch.Generator().set_state(state)


def advance(generator, d: int, copy) -> None:
    """Records that an operator has drawn from `copy`, which `shadow` returned for the same generator."""
    if not _graphs and not _replays():
        if generator is None:
            generator = torch.cuda.default_generators[d]
        seed = generator.initial_seed()
        after = _advance(generator, seed, generator.get_offset(), copy.get_state())
        if len(_live) >= _SEEDS:
            _live.clear()
        if _stored(seed, after) is not None:
            _live[seed, after] = copy


# The bytes of a generator's state that differ between any two states that follow each other: its place in the block of numbers and the first
# of them, and what is left of pairs of normally distributed numbers.
_FIRST, _LAST = 64, 40
_State = ctypes.c_char * torch.Generator().get_state().numel()


def _digest(state) -> int:
    """A number of 24 bits of a generator's state; NumPy, which torch does not require, may be absent."""
    memory = _State.from_address(state.data_ptr())
    return zlib.crc32(memory[-_LAST:], zlib.crc32(memory[:_FIRST])) >> 8


def _advance(generator, seed: int, offset: int, state) -> int:
    """Moves a generator on from its pair to one that gets a state of the CPU's generator; returns the new offset."""
    after = offset + 4 + 4 * _digest(state)
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
    return after


class seeded:
    """Makes operators that draw from the CPU's default generator draw the numbers of the device's generator."""

    def __init__(self, d: int):
        # The CPU generator that lasts, for what a graph captures or replays.
        self.lasting = _replayed if _replays() else _captured if capture.STATE.graphs else None
        self.generator = _of(None, d) if self.lasting is None else None

    def __enter__(self):
        if self.lasting is None:
            self.seed, self.offset = self.generator.initial_seed(), self.generator.get_offset()
            state = _stored(self.seed, self.offset)
            if state is None:
                state = _fresh(self.seed, self.offset).get_state()
        else:
            state = self.lasting.get_state()
        self.before = _own.get_state()
        _own.set_state(state)

    def __exit__(self, *error):
        after = _own.get_state()
        _own.set_state(self.before)
        if self.lasting is not None:
            self.lasting.set_state(after)
        else:
            _advance(self.generator, self.seed, self.offset, after)
