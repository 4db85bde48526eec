"""Layers that have kernels of their own on CUDA only: cuDNN's, and fused ones."""

OURS = {}
