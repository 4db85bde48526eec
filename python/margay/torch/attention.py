"""Attention: implements CUDA's fused operators with those of the CPU.

`scaled_dot_product_attention` chooses among fused operators that exist for CUDA only: flash, memory-efficient and cuDNN attention. Each
is computed by the CPU's flash attention here. What that does not support (dropout, a mask that needs a gradient, grouped queries) is
composed of matrix products and a softmax.
"""

from __future__ import annotations

import torch

from margay.torch import memory
from margay.torch.autograd import gradients
from margay.torch.wide import NARROW

_aten = torch.ops.aten
#: what is called most often, without looking anything up
_flash_cpu = torch._C._VariableFunctions._scaled_dot_product_flash_attention_for_cpu
_flash_cpu_backward = _aten._scaled_dot_product_flash_attention_for_cpu_backward.default._op


def _wide(*tensors):
    """The tensors in float32 at least, in which processors without instructions for narrow types multiply several times as fast."""
    return [t.float() if t is not None and t.dtype in NARROW else t for t in tensors]


def _simple(query, key, value, bias, dropout_p):
    """Whether the CPU's flash attention supports these arguments."""
    if dropout_p != 0:
        return False
    sizes, others, values = query.size(), key.size(), value.size()
    return (
        query.stride(3) == key.stride(3) == value.stride(3) == 1
        and sizes[1] == others[1] == values[1]
        and sizes[3] == values[3]
        and 0 not in sizes
        and 0 not in others
        and 0 not in values
        and (bias is None or bias.dtype in (query.dtype, torch.float32))
    )


def attend(query, key, value, bias, seen, scale, dropout_p, generator):
    """Attention as matrix products and a softmax, over (…, heads, rows, columns): the output, and the logarithms of the sums.

    `seen` tells by row which keys a query sees; `None`: all. A query that sees none yields zeros. The generator determines which weights
    are dropped.
    """
    wide = torch.float32 if query.dtype.itemsize < 4 else query.dtype
    groups = query.size(-3) // max(key.size(-3), 1)
    if groups > 1:
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scale = query.size(-1) ** -0.5 if scale is None else scale
    scores = query.to(wide) @ key.to(wide).transpose(-1, -2) * scale
    if bias is not None:
        scores = scores + bias
    if seen is not None:
        blind = ~seen.any(1, keepdim=True)
        scores = scores.masked_fill(~seen & ~blind, float("-inf")).masked_fill(blind, 0.0)
    weights, lse = scores.softmax(-1), scores.logsumexp(-1)
    if seen is not None:
        weights, lse = weights * ~blind, lse.masked_fill(blind.squeeze(1), float("inf"))
    if dropout_p > 0:
        kept = torch.empty(weights.shape, dtype=wide).bernoulli_(1 - dropout_p, generator=generator)
        weights = weights * kept / (1 - dropout_p)
    return (weights @ value.to(wide)).to(query.dtype), lse


def generator_of(seed, dropout_p):
    """What draws the choices of dropout; `None` without dropout."""
    if dropout_p == 0:
        return None
    return torch.Generator().manual_seed(int((memory.dense(seed) if seed.is_cuda else seed).view(-1)[0]))


def _composed(query, key, value, bias, dropout_p, is_causal, scale, seed):
    seen = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool).tril() if is_causal else None
    return attend(query, key, value, bias, seen, scale, dropout_p, generator_of(seed, dropout_p))


def _composed_backward(grad_out, query, key, value, bias, dropout_p, is_causal, scale, seed, mask):
    def compute(*inputs):
        return _composed(*inputs, dropout_p, is_causal, scale, seed)[:1]

    return tuple(gradients(compute, (query, key, value, bias), mask, [grad_out]))


def new_seed(dropout_p):
    """The seed from which the backward pass repeats the choices of dropout: zero without dropout."""
    return torch.randint(1 << 31, ()) if dropout_p > 0 else torch.zeros((), dtype=torch.int64)


def _zero(device, dtype=torch.int64):
    return memory.zeros((), (), dtype, device)


def _forward(device, query, key, value, bias, dropout_p, is_causal, scale):
    """Output, logarithms of the sums, and the seed of dropout."""
    seed = new_seed(dropout_p) if dropout_p > 0 else _zero(device)
    if _simple(query, key, value, bias, dropout_p):
        dtype = query.dtype
        if dtype in NARROW:
            query, key, value, bias = _wide(query, key, value, bias)
        # Keywords are costly.
        options = {} if bias is None and scale is None else {"attn_mask": bias, "scale": scale}
        out, lse = _flash_cpu(query, key, value, 0.0, is_causal, **options)
        if out.dtype is not dtype:
            out = out.to(dtype)
    else:
        out, lse = _composed(query, key, value, bias, dropout_p, is_causal, scale, seed)
    return out, lse, seed


def _backward(grad_out, query, key, value, bias, out, lse, dropout_p, is_causal, scale, seed, mask):
    if not _simple(query, key, value, bias, dropout_p) or (bias is not None and mask[3]):
        return _composed_backward(grad_out, query, key, value, bias, dropout_p, is_causal, scale, seed, mask)
    dtype = query.dtype
    if dtype in NARROW:
        grad_out, query, key, value, out, bias = _wide(grad_out, query, key, value, out, bias)
    if bias is None and scale is None:  # keywords are costly
        q, k, v = _flash_cpu_backward(grad_out, query, key, value, out, lse, 0.0, is_causal)
    else:
        q, k, v = _flash_cpu_backward(grad_out, query, key, value, out, lse, 0.0, is_causal, attn_mask=bias, scale=scale)
    if dtype in NARROW:
        return q.to(dtype), k.to(dtype), v.to(dtype), None
    return q, k, v, None


def padded(rows):
    """The number of rows that CUDA's memory-efficient attention has room for in the logarithms of the sums."""
    return -(-rows // 32) * 32


def _padded_lse(lse, rows, device):
    """The logarithms of the sums as CUDA's memory-efficient operator lays them out."""
    batch, heads, _ = lse.size()
    room = padded(rows)
    result = memory.new((batch, heads, room), (heads * room, room, 1), lse.dtype, device)
    place = memory.dense(result)
    if room > rows:
        place.fill_(float("inf"))
    _part(place, rows).copy_(lse)
    return result


def _part(lse, rows):
    """The first `rows` of the logarithms of the sums, in half the time of `narrow`."""
    batch, heads, _ = lse.size()
    return torch._C._dynamo.guards._reinterpret_tensor(lse, (batch, heads, rows), lse.stride(), 0)


def _like(tensor, model):
    """The tensor with the memory order of the model's dimensions, which compiled code expects of CUDA's operators."""
    if tensor.shape == model.shape:
        wanted = torch.empty_like(model)
    else:
        order = sorted(range(model.dim()), key=lambda d: (-model.stride(d), d))
        wanted = torch.empty_permuted(tensor.shape, order, dtype=tensor.dtype)
    return tensor if tensor.stride() == wanted.stride() else wanted.copy_(tensor)


def _rows_first(tensor, device):
    """A tensor of batch, heads, rows and columns on the device, in memory by batch, row, head and column."""
    _, heads, rows, columns = tensor.size()
    return memory.laid_out(tensor, device, (heads * rows * columns, columns, heads * columns, 1))


@memory.on_device()
def _flash(device, query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    out, lse, seed = _forward(device, query, key, value, None, dropout_p, is_causal, scale)
    if dropout_p > 0:
        state = torch.stack([seed, torch.zeros_like(seed)]).to(torch.uint64)
    else:
        state = memory.zeros((2,), (1,), torch.uint64, device)
    unused, debug_mask = _zero(device, torch.uint64), memory.new((0,), (1,), query.dtype, device)
    return _like(out, query), lse.contiguous(), None, None, query.size(2), key.size(2), state, unused, debug_mask


@memory.on_device("philox_seed", "philox_offset")
def _flash_backward(
    device,
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    cum_seq_q,
    cum_seq_k,
    max_q,
    max_k,
    dropout_p,
    is_causal,
    philox_seed,
    philox_offset,
    *,
    scale=None,
):
    mask = [True, True, True, False]
    grads = _backward(grad_out, query, key, value, None, out, logsumexp, dropout_p, is_causal, scale, philox_seed, mask)
    return tuple(_like(g, t) for g, t in zip(grads, (query, key, value), strict=False))


@memory.on_device()
def _efficient(device, query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, *, scale=None):
    out, lse, seed = _forward(device, query, key, value, attn_bias, dropout_p, is_causal, scale)
    batch, heads, rows, _ = query.size()
    if compute_log_sumexp:
        lse = _padded_lse(lse, rows, device)
    else:
        lse = memory.new((batch, heads, 0), (max(heads, 1), 1, 1), lse.dtype, device)
    return _rows_first(out, device), lse, seed, _zero(device)


@memory.on_device("philox_seed", "philox_offset")
def _efficient_backward(
    device,
    grad_out,
    query,
    key,
    value,
    attn_bias,
    out,
    logsumexp,
    philox_seed,
    philox_offset,
    dropout_p,
    grad_input_mask,
    is_causal=False,
    *,
    scale=None,
):
    lse = logsumexp if logsumexp.size(-1) == query.size(2) else _part(logsumexp, query.size(2)).contiguous()
    q, k, v, b = _backward(grad_out, query, key, value, attn_bias, out, lse, dropout_p, is_causal, scale, philox_seed, grad_input_mask)
    return (
        None if q is None else _rows_first(q, device),
        None if k is None else _rows_first(k, device),
        None if v is None else _rows_first(v, device),
        b,
    )


@memory.on_device()
def _cudnn(device, query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    out, lse, seed = _forward(device, query, key, value, attn_bias, dropout_p, is_causal, scale)
    rest = seed, _zero(device), memory.new((0,), (1,), query.dtype, device)
    return _like(out, query), lse.contiguous().unsqueeze(-1), None, None, query.size(2), key.size(2), *rest


@memory.on_device("philox_seed", "philox_offset")
def _cudnn_backward(
    device,
    grad_out,
    query,
    key,
    value,
    out,
    logsumexp,
    philox_seed,
    philox_offset,
    attn_bias,
    cum_seq_q,
    cum_seq_k,
    max_q,
    max_k,
    dropout_p,
    is_causal,
    *,
    scale=None,
):
    mask = [True, True, True, False]
    lse = logsumexp.squeeze(-1)
    grads = _backward(grad_out, query, key, value, attn_bias, out, lse, dropout_p, is_causal, scale, philox_seed, mask)
    return tuple(_like(g, t) for g, t in zip(grads, (query, key, value), strict=False))


#: operators on CPU tensors
OURS = {
    "aten::_scaled_dot_product_flash_attention": _flash,
    "aten::_scaled_dot_product_flash_attention_backward": _flash_backward,
    "aten::_scaled_dot_product_efficient_attention": _efficient,
    "aten::_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "aten::_scaled_dot_product_cudnn_attention": _cudnn,
    "aten::_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
}
