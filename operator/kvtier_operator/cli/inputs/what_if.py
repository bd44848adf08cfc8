"""Options by which a resource is tried without a file, or with other values than a file's."""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from kvtier_operator.api.edits import Edit
    from kvtier_operator.api.resource import KVCacheTier

OPTIONS: Final = "the options"
"""Where a resource came from that no file has."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the options say; None, or nothing, where they say nothing."""

    model: str | None = None
    gpu: str | None = None
    tensor_parallel_size: int | None = None
    cpu: str | None = None
    disk: str | None = None
    backend: str | None = None
    settings: tuple[str, ...] = ()  # PATH=VALUE

    @property
    def edits(self) -> "tuple[Edit, ...]":
        """The same as changes of fields; `settings` go last."""
        from kvtier_operator.api.edits import Edit, parse_edit  # noqa: PLC0415 - help needs none of it

        values: dict[str, object] = {
            "spec.model.name": self.model,
            "spec.engine.gpu": self.gpu and self.gpu.lower(),
            "spec.engine.tensorParallelSize": self.tensor_parallel_size,
            "spec.tiers.cpu.capacity": self.cpu,
            "spec.tiers.disk.capacity": self.disk,
            "spec.backend": self.backend,
        }
        edits = [Edit(path, value) for path, value in values.items() if value is not None]
        if self.disk is not None:
            edits.append(Edit("spec.tiers.disk.volume", {"emptyDir": {}}, if_absent=True))
        return (*edits, *(parse_edit(setting, "--set") for setting in self.settings))

    def document(self, **otherwise: str | int) -> dict[str, Any]:
        """The document of a resource that only the options describe; `otherwise` where they say nothing."""
        from dataclasses import replace  # noqa: PLC0415 - as above

        from kvtier_operator.api.edits import apply_edits  # noqa: PLC0415 - as above
        from kvtier_operator.api.first_resource import first_document  # noqa: PLC0415 - as above

        defaults = {name: value for name, value in otherwise.items() if getattr(self, name) is None}
        filled: WhatIf = replace(self, **defaults)  # type: ignore[arg-type]
        return apply_edits(first_document(filled.model or ""), filled.edits, OPTIONS)

    def resource(self, **otherwise: str | int) -> "KVCacheTier":
        """The same, parsed."""
        from kvtier_operator.api.parse import parse_resource  # noqa: PLC0415 - as above

        return parse_resource(self.document(**otherwise), OPTIONS)


def _models(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    """Known models for a shell, upper and lower case alike."""
    from kvtier_operator.planning.model_shape.catalogue import published_names  # noqa: PLC0415 - a shell alone asks

    return _beginning(published_names(), incomplete)


def _gpus(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from kvtier_operator.api.spec.gpu import Gpu  # noqa: PLC0415 - as above

    return _beginning(Gpu, incomplete)


def _backends(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
    from kvtier_operator.api.spec.tiers import Backend  # noqa: PLC0415 - as above

    return _beginning(Backend, incomplete)


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [str(name) for name in names if name.lower().startswith(incomplete.lower())]


def what_if(command: Callable[..., None]) -> Callable[..., None]:
    """The options, which the command gets as one `asked`."""

    @click.option(
        "--model",
        metavar="NAME",
        shell_complete=_models,
        help="spec.model.name, as on Hugging Face.",
    )
    @click.option("--gpu", metavar="GPU", shell_complete=_gpus, help="spec.engine.gpu, such as h100.")
    @click.option("--tp", type=int, metavar="N", help="spec.engine.tensorParallelSize: GPUs of an engine.")
    @click.option("--cpu", metavar="SIZE", help="spec.tiers.cpu.capacity, such as 100Gi.")
    @click.option(
        "--disk", metavar="SIZE", help="spec.tiers.disk.capacity; an emptyDir unless a file says more."
    )
    @click.option("--backend", metavar="BACKEND", shell_complete=_backends, help="spec.backend.")
    @click.option(
        "--set",
        "settings",
        metavar="PATH=VALUE",
        multiple=True,
        help="Any field, such as spec.engine.maxModelLen=32768, the value in YAML; may be repeated.",
    )
    @functools.wraps(command)
    def with_what_if(  # noqa: PLR0913 - one parameter an option
        *,
        model: str | None,
        gpu: str | None,
        tp: int | None,
        cpu: str | None,
        disk: str | None,
        backend: str | None,
        settings: tuple[str, ...],
        **values: Any,  # noqa: ANN401 - the command's own
    ) -> None:
        asked = WhatIf(model, gpu, tp, cpu, disk, backend, settings)
        command(asked=asked, **values)

    return with_what_if
