"""Attention: CUDA's fused operators by the CPU's."""

OURS = {}
