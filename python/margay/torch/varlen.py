"""Attention over consecutive sequences of different lengths: `_flash_attention_*` and `_efficient_attention_*`.

`varlen_attn`, nested tensors and libraries call these directly. Tensors are (rows, heads, columns) with the offsets at which sequences
begin, or (batch, rows, heads, columns). Each sequence is computed by matrix products and a softmax in float32, as flash attention
accumulates.
"""

from __future__ import annotations

from itertools import pairwise

import torch

from margay.torch.attention import attend, generator_of, new_seed, padded
from margay.torch.autograd import gradients


def _sequences(tensor, begins, used=None):
    """The sequences of a tensor: (rows, heads, columns) each. `used` says how many rows of each count."""
    if begins is None:
        parts = list(tensor.unbind(0))
    else:
        rows = tensor if tensor.dim() == 3 else tensor.squeeze(0)
        parts = [rows[begin:end] for begin, end in pairwise(begins.tolist())]
    return parts if used is None else [part[:count] for part, count in zip(parts, used.tolist(), strict=True)]


class _Rule:
    """Which keys a query sees: those from `left` before to `right` after its own position; `None` sets no bound."""

    def __init__(self, left, right, from_the_end=True):
        self.left = None if left is None or left < 0 else left
        self.right = None if right is None or right < 0 else right
        self.from_the_end = from_the_end  # the last query's place is the last key's; else the first's is the first's

    def sees(self, rows, columns):
        place = torch.arange(rows).unsqueeze(1) + (columns - rows if self.from_the_end else 0)
        key = torch.arange(columns)
        seen = torch.ones(rows, columns, dtype=torch.bool)
        if self.right is not None:
            seen &= key <= place + self.right
        if self.left is not None:
            seen &= key >= place - self.left
        return seen


def _attend(query, key, value, rule, bias, scale, dropout_p, generator):
    """One sequence: the output, and the logarithms of the sums as (heads, rows)."""
    query, key, value = (t.transpose(0, 1) for t in (query, key, value))
    seen = rule.sees(query.size(1), key.size(1))
    out, lse = attend(query, key, value, bias, seen, scale, dropout_p, generator)
    return out.transpose(0, 1), lse


def _all(query, key, value, begins_q, begins_k, used, rule, bias, scale, dropout_p, seed):
    """All sequences: the output, and the list of the logarithms of the sums."""
    generator = generator_of(seed, dropout_p)
    lists = _sequences(query, begins_q), _sequences(key, begins_k, used), _sequences(value, begins_k, used)
    biases = [None] * len(lists[0]) if bias is None else list(bias.expand(len(lists[0]), *bias.shape[1:]).unbind(0))
    parts = [_attend(*tensors, rule, b, scale, dropout_p, generator) for *tensors, b in zip(*lists, biases, strict=True)]
    outs = [out for out, _ in parts]
    if begins_q is None:
        result = torch.stack(outs)
    else:
        result = torch.cat(outs) if outs else query.new_zeros(0, *query.shape[-2:])
        result = result.view(*query.shape[:-1], value.size(-1))
    return result, [lse for _, lse in parts]


def _flash_rule(is_causal, left, right):
    return _Rule(left, 0 if is_causal else right)


def _flash(
    query,
    key,
    value,
    cum_seq_q,
    cum_seq_k,
    max_q,
    max_k,
    dropout_p,
    is_causal,
    return_debug_mask,
    *,
    scale=None,
    window_size_left=None,
    window_size_right=None,
    seqused_k=None,
    alibi_slopes=None,
    block_table=None,
    num_splits=None,
):
    for name, given in (("alibi_slopes", alibi_slopes), ("block_table", block_table)):
        if given is not None:
            raise NotImplementedError(f"margay: aten::_flash_attention_forward is not supported with {name}")
    seed = new_seed(dropout_p)
    rule = _flash_rule(is_causal, window_size_left, window_size_right)
    out, sums = _all(query, key, value, cum_seq_q, cum_seq_k, seqused_k, rule, None, scale, dropout_p, seed)
    lse = torch.stack(sums) if cum_seq_q is None else torch.cat(sums, 1) if sums else query.new_zeros(query.size(1), 0, dtype=torch.float32)
    state = torch.stack([seed, torch.zeros_like(seed)]).to(torch.uint64)
    return out, lse.float(), state, state.new_zeros(()), query.new_empty(0)


def _flash_backward(
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
    rng_state,
    unused,
    *,
    scale=None,
    window_size_left=None,
    window_size_right=None,
):
    rule = _flash_rule(is_causal, window_size_left, window_size_right)

    def compute(q, k, v):
        return _all(q, k, v, cum_seq_q, cum_seq_k, None, rule, None, scale, dropout_p, rng_state)[:1]

    return tuple(gradients(compute, (query, key, value), (True,) * 3, [grad_out]))


def _efficient_rule(custom_mask_type, window_size):
    """0: no mask; 1: causal from the first query and key on; 2: causal up to the last ones."""
    left = None if not window_size or window_size < 0 else window_size - 1
    return _Rule(left, None if custom_mask_type == 0 else 0, custom_mask_type == 2)


def _efficient(
    query,
    key,
    value,
    bias,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    dropout_p,
    custom_mask_type,
    compute_log_sumexp=False,
    *,
    scale=None,
    seqlen_k=None,
    window_size=None,
):
    seed = new_seed(dropout_p)
    rule = _efficient_rule(custom_mask_type, window_size)
    out, sums = _all(query, key, value, cu_seqlens_q, cu_seqlens_k, seqlen_k, rule, bias, scale, dropout_p, seed)
    longest = query.size(1) if cu_seqlens_q is None else max((s.size(1) for s in sums), default=0)
    keys = key.size(1) if cu_seqlens_k is None else max(cu_seqlens_k.diff().tolist(), default=0)
    rows = padded(longest) if compute_log_sumexp else 0
    lse = torch.full((len(sums), query.size(2), rows), float("inf"))
    if compute_log_sumexp:
        for place, s in zip(lse, sums, strict=True):
            place[:, : s.size(1)] = s
    return out, lse, seed, torch.zeros_like(seed), longest, keys


def _efficient_backward(
    grad_out_,
    query,
    key,
    value,
    bias,
    out,
    cu_seqlens_q,
    cu_seqlens_k,
    max_seqlen_q,
    max_seqlen_k,
    logsumexp,
    dropout_p,
    philox_seed,
    philox_offset,
    custom_mask_type,
    bias_requires_grad,
    *,
    scale=None,
    num_splits_key=None,
    window_size=None,
    shared_storage_dqdkdv=False,
):
    rule = _efficient_rule(custom_mask_type, window_size)

    def compute(q, k, v, b):
        return _all(q, k, v, cu_seqlens_q, cu_seqlens_k, None, rule, b, scale, dropout_p, philox_seed)[:1]

    return tuple(gradients(compute, (query, key, value, bias), (True, True, True, bias_requires_grad), [grad_out_]))


#: operators on CPU tensors
OURS = {
    "aten::_flash_attention_forward": _flash,
    "aten::_flash_attention_backward": _flash_backward,
    "aten::_efficient_attention_forward": _efficient,
    "aten::_efficient_attention_backward": _efficient_backward,
}
