"""Sparse tensors: their indices and values are dense tensors, so an alias of a sparse tensor is one of their aliases."""

from __future__ import annotations

import torch

from margay.torch import memory

_ROWS = (torch.sparse_csr, torch.sparse_bsr)


def _parts(tensor):
    """Compressed and plain indices."""
    if tensor.layout in _ROWS:
        return tensor.crow_indices(), tensor.col_indices()
    return tensor.ccol_indices(), tensor.row_indices()


def _made(tensor, change):
    """Returns a sparse tensor like this one with other dense parts."""
    if tensor.layout is torch.sparse_coo:
        indices, values = change(tensor._indices()), change(tensor._values())
        return torch.ops.aten._sparse_coo_tensor_unsafe(indices, values, tensor.size(), is_coalesced=tensor.is_coalesced())
    compressed, plain = map(change, _parts(tensor))
    values = change(tensor.values())
    return torch.ops.aten._sparse_compressed_tensor_unsafe(
        compressed, plain, values, tensor.size(), dtype=tensor.dtype, layout=tensor.layout, device=values.device
    )


def writable(tensor):
    """`alias` for an operator that changes the tensor: it cannot give parts more elements than their storages hold, except empty ones."""
    return _made(tensor, memory.exact)


def emptied(tensor):
    """What an operator fills for an `out=` argument, to which `write_back` copies it."""
    if tensor.layout is not torch.sparse_coo:
        return writable(tensor)
    return torch.ops.aten._sparse_coo_tensor_with_dims(
        tensor.sparse_dim(), tensor.dense_dim(), tensor.size(), dtype=tensor.dtype, layout=torch.sparse_coo, device=torch.device("cpu")
    )


def alias(tensor):
    """The memory of a sparse CUDA tensor as a sparse CPU tensor."""
    if tensor.layout not in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        raise NotImplementedError(f"margay: tensors of layout {tensor.layout} on device cuda")
    return _made(tensor, memory.alias)


def adopt(result, device):
    """A sparse CPU tensor as a sparse CUDA tensor."""
    return _made(result, lambda part: memory.adopt(part, device))


def write_back(tensor, result) -> None:
    """Gives a sparse CUDA tensor what an operator made of its alias, which may have got other indices and values."""
    device = tensor.device
    if tensor.layout is torch.sparse_coo:
        same = result._values().data_ptr() == tensor._values().data_ptr() and result._nnz() == tensor._nnz()
        if not same or result.size() != tensor.size():
            torch.ops.aten.copy_sparse_to_sparse_(tensor, adopt(result, device))
        tensor._coalesced_(result.is_coalesced())
    elif result.values().data_ptr() != tensor.values().data_ptr():
        new = adopt(result, device)
        if new.values().shape != tensor.values().shape:
            torch.ops.aten.resize_as_sparse_(tensor, new)
        tensor.copy_(new)
