"""PyTorch models as fedlink tasks: you train, fedlink does radio, scheduling, compression and aggregation."""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError("fedlink.torch needs PyTorch: pip install 'torch>=2'") from error

from ._task import Task

__all__ = ["Task"]
