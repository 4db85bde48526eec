"""Selects the operators of torch's dispatcher that get our kernel for the `cuda` device."""

from __future__ import annotations

import functools
import inspect
import warnings

import torch

from margay.torch import (
    attention,
    deterministic,
    distributed,
    kernel,
    layers,
    mixed,
    packed,
    products,
    recurrent,
    refused,
    strides,
    synchronizing,
    two_of_four,
    varlen,
    whole,
)

# What torch's own CUDA code does without a kernel: it allocates, frees, notes, or changes sizes and strides.
_OWN = {
    "aten::empty.memory_format",
    "aten::empty_strided",
    "aten::empty_permuted",
    "aten::resize_",
    "aten::record_stream",
    "aten::is_pinned",
    "aten::_pin_memory",
    "aten::_efficientzerotensor",
    "aten::_copy_from_and_resize",
    "aten::_fused_sdp_choice",
    "inductor_prims::inductor_reserve_rng_state",
}
_OWN_PREFIXES = ("aten::set_.", "aten::set_", "symm_mem::", "fsdp::", "_native::")

# Operators that torch composes of others on any device, but that have a better or a bit-equal form on the CPU.
_COMPOSED = (
    "aten::copy_",
    "aten::convolution",
    "aten::convolution_backward",
    "aten::convolution_overrideable",
    "aten::convolution_backward_overrideable",
    # Composed of a product and a power, except for integer exponents, for which it calls torch's own CUDA code. Older releases compose its
    # derivative, too, which a kernel would replace.
    "aten::ldexp.Tensor",
    "aten::ldexp.out",
    "aten::ldexp_",
)


def names() -> list[str]:
    """The operators for which `register` installs a kernel, by their full names."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        if name in _OWN or name.startswith(_OWN_PREFIXES):
            continue
        composed = (name in _COMPOSED or name in whole.NAMES) and not has(name, "CompositeImplicitAutograd")
        above = name in whole.ABOVE_AUTOGRAD or _is_composed_above(name)
        if name in OURS or name in ANSWERS or above or composed or (has(name, "CUDA") and not _is_view(name)):
            found.append(name)
    return found


def _is_composed_above(name: str) -> bool:
    """Whether one call computes an operator that torch composes above autograd; other releases may have kernels for it."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return name in whole.COMPOSED and has(name, "CompositeImplicitAutograd") and not has(name, "AutogradCUDA")


def _has_derivative(name: str) -> bool:
    """Whether torch has a kernel that records an operator for autograd."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(name, "Autograd")


def _is_view(name: str) -> bool:
    """Whether an operator returns a view of an argument, which torch's own code handles without a kernel."""
    for returned in kernel.schema_of(name).returns:
        alias = returned.alias_info
        if alias is not None and not alias.is_write:
            return True
    return False


_PARTS = (attention, layers, packed, products, recurrent, strides, two_of_four, varlen)
#: operator without a CPU kernel of that name -> what computes it on CPU tensors
OURS = {name: call for part in _PARTS for name, call in part.OURS.items()}
#: operator -> what answers it for CUDA tensors
ANSWERS = {**recurrent.ANSWERS}

_libraries = {}
# Releases before 2.7 do not ask.
_ALLOWED = {"allow_override": True} if "allow_override" in inspect.signature(torch.library.Library.impl).parameters else {}


# Layouts that are not dense: CUDA's dispatch key and the CPU's.
_LAYOUTS = {
    "SparseCUDA": "SparseCPU",
    "SparseCsrCUDA": "SparseCsrCPU",
    "QuantizedCUDA": "QuantizedCPU",
    "NestedTensorCUDA": "NestedTensorCPU",
}
# What makes or describes such tensors of dense parts, and computes nothing.
_MAKERS = (
    "aten::_coalesced_",
    "aten::_empty_affine_quantized",
    "aten::_empty_per_channel_affine_quantized",
    "aten::_nested_tensor_",
    "aten::_nested_view_from_buffer",
    "aten::_sparse_bs",
    "aten::_sparse_compressed_",
    "aten::_sparse_coo_",
    "aten::_sparse_csc_",
    "aten::_sparse_csr_tensor",
    "aten::copy_sparse_to_sparse_",
    "aten::empty",
    "aten::resize_as_sparse_",
    "aten::resize_",
    "aten::sparse_resize_",
    "aten::sparse_c",
    "aten::q_",
    "aten::qscheme",
)
# What returns no view of a sparse tensor, although its schema says so.
_NO_VIEWS = ("aten::_sparse_broadcast_to",)


def layout_names(key: str) -> list[str]:
    """The operators that get a kernel for a dispatch key of a layout that is not dense."""
    has, computed = torch._C._dispatch_has_kernel_for_dispatch_key, torch._C._dispatch_has_computed_kernel_for_dispatch_key
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        views = _is_view(name) and name not in _NO_VIEWS
        if has(name, key) and computed(name, _LAYOUTS[key]) and not name.startswith(_MAKERS) and not views:
            if any("Tensor" in str(returned.type) for returned in kernel.schema_of(name).returns):
                found.append(name)
    return found


def register() -> int:
    """Replaces torch's kernels, and returns their number. Some releases of torch warn about overridden kernels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _register()


def _register() -> int:
    """Replaces torch's kernels for the dispatch key `CUDA`, and returns their number."""
    count = 0
    kernels = {name: _kernel(name) for name in names()}
    for name, computed in kernels.items():
        _override(name, computed, "CUDA")
        count += 1
    for key in _LAYOUTS:
        for name in layout_names(key):
            _override(name, kernel.lazy(name, None, False), key)
            count += 1
    for name, key, answer in recurrent.layers():
        _libraries["aten"].impl(name, answer, key, **_ALLOWED)
    derived = [name for name in kernels if name in whole.COMPOSED]
    further = [name for name in whole.DERIVED if name in kernels and _has_derivative(name)]
    if not hasattr(torch.library, "get_kernel"):  # older releases tell nobody the kernel that is replaced, which has the parts
        derived, further = [name for name in derived if not _has_derivative(name)], []
    for name in derived + further:
        _override(name, whole.above_autograd(name, kernels[name], OURS.get(name)), "AutogradCUDA", with_keyset=True)
    for name in (*whole.ABOVE_AUTOGRAD, *derived):
        # `torch.vmap` decomposes an operator only while no device has a kernel for it.
        if not torch._C._dispatch_has_kernel_for_dispatch_key(name, "FuncTorchBatched"):
            composed = functools.partial(kernel.overload_of(name)._op_dk, torch._C.DispatchKey.CompositeImplicitAutograd)
            _override(name, composed, "FuncTorchBatched")
    _serve_composite_calls(kernels)
    # A program may override the kernels, as it may override torch's own, but torch lets Python override no kernel of Python's.
    for library in _libraries.values():
        getattr(torch.library, "_impls", set()).difference_update(getattr(library, "_op_impls", ()))
    return count


def _override(name: str, computed, key: str, **options) -> None:
    space, _, rest = name.partition("::")
    library = _libraries.get(space)
    if library is None:
        library = _libraries[space] = torch.library.Library(space, "IMPL")
    library.impl(rest, computed, key, **_ALLOWED, **options)


def _serve_composite_calls(kernels) -> None:
    """Has `op.redispatch(DispatchKeySet(DispatchKey.CompositeExplicitAutograd), …)` call our kernel for CUDA tensors.

    Libraries that replace an operator by a Triton kernel call torch's like this for what they do not support. The set is empty to torch, which
    then calls its own code for all devices, and that calls CUDA code of torch's.
    """
    overload, below = torch._ops.OpOverload, torch._C._AutoDispatchBelowAutograd
    real = overload.redispatch

    @functools.wraps(real)
    def redispatch(self, /, keyset, *args, **kwargs):
        if keyset.raw_repr() == 0 and (kernel := kernels.get(self.name())) is not None:
            if any(isinstance(a, torch.Tensor) and a.is_cuda for a in (*args, *kwargs.values())):
                with below():
                    return kernel(*args, **kwargs)
        return real(self, keyset, *args, **kwargs)

    overload.redispatch = redispatch


def _kernel(name: str):
    if name in ANSWERS:
        return ANSWERS[name]
    if name.startswith("c10d::"):
        return distributed.collective(name)
    call = OURS.get(name)
    if call is None and not torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, "CPU"):
        return _absent(name)
    computed = kernel.lazy(name, call)
    if name.startswith("aten::_foreach_") and torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeExplicitAutograd"):
        computed = mixed.tensor_by_tensor(name, computed)
    found = mixed.CHECKS.get(name), deterministic.alert_of(name), synchronizing.alert_of(name), refused.check_of(name)
    checks = [check for check in found if check is not None]
    if not checks:
        return computed

    def checked(*args, **kwargs):
        for check in checks:
            check(*args, **kwargs)
        return computed(*args, **kwargs)

    return checked


def _absent(name: str):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"margay: {name} has no kernel for torch's cpu device, so margay's cuda device has none either")

    return refuse
