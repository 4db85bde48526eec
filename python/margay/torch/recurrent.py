"""Recurrent layers: cuDNN's operators and the fused cells, implemented with the CPU's.

cuDNN keeps the data for its backward pass in a reserve; here the reserve contains the random state of dropout, and the backward
pass runs the layers again.
"""

from __future__ import annotations

import torch

from margay.torch.autograd import gradients

_aten, _cudnn_enabled = torch.ops.aten, torch._C._get_cudnn_enabled
_RELU, _TANH, _LSTM, _GRU = range(4)
_LAYERS = {_RELU: "rnn_relu", _TANH: "rnn_tanh", _GRU: "gru"}


def _layers(input, weights, stride, hx, cx, mode, num_layers, batch_first, dropout, train, bidirectional, batch_sizes, proj_size):
    """Returns output, last hidden state and last cell state of the layers."""
    biases = stride - (1 if proj_size else 0) > 2
    if len(batch_sizes):
        start = (input, torch.tensor(batch_sizes, dtype=torch.int64))
        rest = (weights, biases, num_layers, dropout, train, bidirectional)
    else:
        start = (input,)
        rest = (weights, biases, num_layers, dropout, train, bidirectional, batch_first)
    if mode == _LSTM:
        return torch._VF.lstm(*start, [hx, cx], *rest)
    return (*getattr(torch._VF, _LAYERS[mode])(*start, hx, *rest), None)


def _rnn(
    input,
    weight,
    weight_stride0,
    weight_buf,
    hx,
    cx,
    mode,
    hidden_size,
    proj_size,
    num_layers,
    batch_first,
    dropout,
    train,
    bidirectional,
    batch_sizes,
    dropout_state,
):
    reserve = torch.get_rng_state() if train and dropout > 0 else torch.empty(0, dtype=torch.uint8)
    options = mode, num_layers, batch_first, dropout, train, bidirectional, batch_sizes, proj_size
    output, hy, cy = _layers(input, list(weight), weight_stride0, hx, cx, *options)
    return output, hy, hx.new_empty(0) if cy is None else cy, reserve, hx.new_empty(0)


def _rnn_backward(
    input,
    weight,
    weight_stride0,
    weight_buf,
    hx,
    cx,
    output,
    grad_output,
    grad_hy,
    grad_cy,
    mode,
    hidden_size,
    proj_size,
    num_layers,
    batch_first,
    dropout,
    train,
    bidirectional,
    batch_sizes,
    dropout_state,
    reserve,
    output_mask,
):
    before = torch.get_rng_state()
    if reserve.numel():
        torch.set_rng_state(reserve.clone())
    options = mode, num_layers, batch_first, dropout, train, bidirectional, batch_sizes, proj_size

    def compute(x, h, c, *parameters):
        return _layers(x, parameters, weight_stride0, h, c, *options)

    given = (input, hx, cx, *weight)
    grads = gradients(compute, given, [True] * len(given), (grad_output, grad_hy, grad_cy))
    torch.set_rng_state(before)
    return (*grads[:3], grads[3:] if output_mask[3] else [])


def _dropout_state(dropout, train, dropout_seed, *, dtype=None, layout=None, device=None, pin_memory=False):
    return torch.empty(0, dtype=torch.uint8)


def _flatten_weight(weight_arr, weight_stride0, input_size, mode, hidden_size, proj_size, num_layers, batch_first, bidirectional):
    return weight_arr[0].new_empty(0)


def _lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias + hidden_bias
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def _lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    i, f, g, o = workspace.chunk(4, 1)
    tanh = cy.tanh()
    through = 0 if grad_cy is None else grad_cy
    by_hidden = 0 if grad_hy is None else grad_hy
    grad_o = by_hidden * tanh
    grad_c = through + by_hidden * o * (1 - tanh * tanh)
    gates = torch.cat(
        [
            grad_c * g * i * (1 - i),
            grad_c * cx * f * (1 - f),
            grad_c * i * (1 - g * g),
            (grad_o * o * (1 - o)).expand_as(o),
        ],
        1,
    )
    return gates, grad_c * f, gates.sum(0) if has_bias else None


def _gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    if input_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    ir, ii, inew = input_gates.chunk(3, 1)
    hr, hi, hnew = hidden_gates.chunk(3, 1)
    reset, update = (hr + ir).sigmoid(), (hi + ii).sigmoid()
    new = (inew + reset * hnew).tanh()
    return (hx - new) * update + new, torch.cat([reset, update, new, hx, hnew], 1)


def _gru_cell_backward(grad_hy, workspace, has_bias):
    reset, update, new, hx, hnew = workspace.chunk(5, 1)
    grad_new = grad_hy * (1 - update) * (1 - new * new)
    grad_update = grad_hy * (hx - new) * update * (1 - update)
    grad_reset = grad_new * hnew * reset * (1 - reset)
    by_input = torch.cat([grad_reset, grad_update, grad_new], 1)
    by_hidden = torch.cat([grad_reset, grad_update, grad_new * reset], 1)
    biases = (by_input.sum(0), by_hidden.sum(0)) if has_bias else (None, None)
    return (by_input, by_hidden, grad_hy * update, *biases)


def _check(input, params, hiddens):
    """Raises torch's error for operands of different devices."""
    for what, tensors in (("hidden", hiddens), ("parameter", params)):
        for t in tensors:
            if t.device != input.device:
                raise RuntimeError(
                    f"Input and {what} tensors are not at the same device, found input tensor at {input.device} and {what} tensor "
                    f"at {t.device}"
                )


def _cudnn(mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, batch_sizes):
    """Implements torch's cuDNN path of `lstm`, `gru` and `rnn_*`, except for its single weight buffer."""
    hidden, cell = hx if mode == _LSTM else (hx, None)
    _check(input, params, [t for t in (hidden, cell) if t is not None])
    hidden_size = hidden.size(2) if cell is None else cell.size(2)
    proj_size = hidden.size(2) if hidden.size(2) != hidden_size else 0
    stride = (4 if has_biases else 2) + (1 if proj_size else 0)
    sizes = batch_sizes.tolist() if batch_sizes is not None else []
    output, hy, cy, _, _ = torch._cudnn_rnn(
        input,
        params,
        stride,
        None,
        hidden,
        cell,
        mode,
        hidden_size,
        proj_size,
        num_layers,
        batch_first,
        dropout,
        train,
        bidirectional,
        sizes,
        None,
    )
    return (output, hy, cy) if mode == _LSTM else (output, hy)


def _composed(name, mode):
    """The layer of padded and of packed input: cuDNN's, or, where that is disabled, torch's composition of cells."""
    packet, composite = getattr(_aten, name), torch._C.DispatchKey.CompositeImplicitAutograd

    def of_input(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
        if not _cudnn_enabled():
            return packet.input._op_dk(composite, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        return _cudnn(mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, None)

    def of_data(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
        if not _cudnn_enabled():
            return packet.data._op_dk(composite, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)
        return _cudnn(mode, data, hx, params, has_biases, num_layers, dropout, train, bidirectional, False, batch_sizes)

    return of_input, of_data


def _autocast_rnn(input, weight, stride, weight_buf, hx, cx, *rest):
    """cuDNN's layers run in autocast's type."""
    dtype = torch.get_autocast_dtype("cuda")
    key = torch._C._dispatch_key_parse("AutocastCUDA")
    cast = lambda t: t.to(dtype) if t is not None and t.is_cuda and t.is_floating_point() else t  # noqa: E731
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
        return torch._cudnn_rnn(cast(input), [cast(w) for w in weight], stride, None, cast(hx), cast(cx), *rest)


def layers():
    """Operators above autograd: (name, dispatch key, implementation)."""
    for mode, name in {**_LAYERS, _LSTM: "lstm"}.items():
        for overload, answer in zip(("input", "data"), _composed(name, mode), strict=True):
            for key in ("CUDA", "AutogradCUDA"):
                yield f"{name}.{overload}", key, answer
    yield "_cudnn_rnn", "AutocastCUDA", _autocast_rnn


#: operators on CPU tensors
OURS = {
    "aten::_cudnn_rnn": _rnn,
    "aten::_cudnn_rnn_backward": _rnn_backward,
    "aten::_cudnn_init_dropout_state": _dropout_state,
    "aten::_cudnn_rnn_flatten_weight": _flatten_weight,
    "aten::_thnn_fused_lstm_cell": _lstm_cell,
    "aten::_thnn_fused_lstm_cell_backward_impl": _lstm_cell_backward,
    "aten::_thnn_fused_gru_cell": _gru_cell,
    "aten::_thnn_fused_gru_cell_backward": _gru_cell_backward,
}
#: operators on the CUDA tensors themselves
ANSWERS = {
    "aten::_use_cudnn_ctc_loss": lambda *args, **kwargs: False,
    "aten::_use_cudnn_ctc_loss.Tensor": lambda *args, **kwargs: False,
    "aten::_use_miopen_ctc_loss": lambda *args, **kwargs: False,
    "aten::_use_miopen_ctc_loss.Tensor": lambda *args, **kwargs: False,
}
