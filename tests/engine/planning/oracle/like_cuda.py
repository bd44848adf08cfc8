"""Has vLLM's build for the CPU take this machine for one with an H100, to configure and to build.

What vLLM plans depends on its platform: backends, their blocks and cache dtypes. The build for the CPU has
no kernels for CUDA, so their modules and operations are stood in for by ones that are there and do nothing.
"""

import importlib
import importlib.abc
import os
import sys
import types
from importlib.machinery import ModuleSpec
from typing import Any, Final

_CAPABILITY: Final = (9, 0)
_KERNELS: Final = (
    "_C",  # the CPU's own, which ends a process on a processor without AVX-512
    "_C_stable_libtorch",
    "_moe_C_stable_libtorch",
    "_flashkda_C",
    "_flashmla_C",
    "_flashmla_extension_C",
)
_PACKAGES: Final = ("cutlass.", "cuda.", "deep_gemm.")
_FLASH_ATTENTION: Final = ("vllm.vllm_flash_attn", "vllm.vllm_flash_attn.flash_attn_interface")
_FLASH_MLA: Final = "vllm.third_party.flashmla.flash_mla_interface"
_FLASH_ATTENTION_VERSIONS: Final = (2, 3, 4)
_OPERATIONS: Final = ("_C", "_moe_C", "_vllm", "vllm", "_flash", "_qutlass", "_rocm_C")


class _Kind(type):
    """Of a class that has every name, as types and decorators of a kernel's language have."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything


class _Anything(metaclass=_Kind):
    """What a module of kernels defines with: made and called while that is imported, of no effect."""

    def __init__(self, *_: object, **__: object) -> None:
        return

    def __call__(self, *_: object, **__: object) -> "_Anything":
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class _Absent(types.ModuleType):
    """A module of kernels: every name is there, and stands for nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        return _Anything


class _Stream:
    """A stream or an event, on which nothing ever runs."""

    def __init__(self, *_: object, **__: object) -> None:
        return


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds packages of kernels that only a machine with a card has, after all others."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if f"{name}.".startswith(_PACKAGES) else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return _Absent(spec.name)

    def exec_module(self, _: types.ModuleType) -> None:
        return


class _Operation:
    """One of CUDA's operations: says that it is supported, computes nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: object, **__: object) -> int:
        if "support" in self._name:
            return True
        if "workspace" in self._name:
            return 0
        raise NotImplementedError(self._name)

    def __getattr__(self, name: str) -> "_Operation":
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def look_like_cuda() -> None:
    """Before anything else imports vLLM."""
    assert not any(name.split(".")[0] == "vllm" for name in sys.modules), "vLLM has been imported already"
    os.environ.update(HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="CRITICAL", OMP_NUM_THREADS="1")
    import torch  # noqa: PLC0415 - after the environment

    for name in _KERNELS:
        sys.modules[f"vllm.{name}"] = types.ModuleType(f"vllm.{name}")
    sys.modules[_FLASH_MLA] = _Absent(_FLASH_MLA)
    for name in _FLASH_ATTENTION:
        module = _Absent(name)
        vars(module).update(
            is_fa_version_supported=lambda version, *_, **__: version in _FLASH_ATTENTION_VERSIONS,
            fa_version_unsupported_reason=lambda *_, **__: None,
        )
        sys.modules[name] = module
    importlib.import_module("xgrammar")  # would use CUDA's bindings if it found them
    sys.meta_path.append(_Finder())
    torch.cuda.current_device = lambda: torch.device("meta")
    torch.cuda.get_device_properties = lambda *_: types.SimpleNamespace(multi_processor_count=132)
    torch.cuda.Stream = torch.cuda.Event = _Stream
    _card()
    _operations()
    _in_this_process()


def _card() -> None:
    import torch  # noqa: PLC0415 - as above
    from vllm import platforms  # noqa: PLC0415
    from vllm.platforms.cuda import NonNvmlCudaPlatform  # noqa: PLC0415
    from vllm.platforms.interface import DeviceCapability  # noqa: PLC0415

    class Card(NonNvmlCudaPlatform):  # type: ignore[misc]  # vLLM is without types here
        device_type = "meta"  # where layers put what they compute with

        @classmethod
        def get_device_capability(cls, *_: object, **__: object) -> Any:
            return DeviceCapability(*_CAPABILITY)

        @classmethod
        def get_device_name(cls, *_: object, **__: object) -> str:
            return "NVIDIA H100 80GB HBM3"

        @classmethod
        def get_device_total_memory(cls, *_: object, **__: object) -> int:
            return 80 << 30

        @classmethod
        def num_compute_units(cls, *_: object, **__: object) -> int:
            return 132

        @classmethod
        def device_count(cls) -> int:
            return 16

        @classmethod
        def import_kernels(cls) -> None:
            return

        def __getattr__(self, name: str) -> Any:
            return getattr(torch.cuda, name)

    platforms._current_platform = Card()


def _operations() -> None:
    import vllm._custom_ops  # noqa: F401, PLC0415 - describes those that are there, before the others seem to be
    from torch._ops import _OpNamespace  # noqa: PLC0415
    from vllm.triton_utils import triton  # noqa: PLC0415

    real = _OpNamespace.__getattr__

    def found(self: Any, name: str) -> Any:
        try:
            return real(self, name)
        except AttributeError:
            if self.name.startswith(_OPERATIONS) and not name.startswith("__"):
                return _Operation(name)
            raise

    _OpNamespace.__getattr__ = found
    triton.Config = lambda kwargs, num_warps=4, num_stages=2, **_: types.SimpleNamespace(
        kwargs=kwargs, num_warps=num_warps, num_stages=num_stages
    )


def _in_this_process() -> None:
    """vLLM asks another process what a model's class can, which would see the real platform."""
    from vllm.model_executor.models import registry  # noqa: PLC0415

    registry._LazyRegisteredModel.inspect_model_cls = lambda self: registry._ModelInfo.from_model_cls(
        self.load_model_cls()
    )
