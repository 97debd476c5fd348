"""One job under way, from the call that sends it to its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional

from .answer import Expected
from .futures import Future
from .handles import Resident, Static
from .job import Job

if TYPE_CHECKING:
    from .line import Line

ATTEMPTS_MAX = 5  # sends of one job after `static_missing` or `resident_gone`


@dataclasses.dataclass(eq=False)
class Ticket:
    future: Future
    job: Job  # with handles among its buffers
    key: Optional[bytes]
    expected: Expected
    size: int  # about what it holds in memory, in bytes
    line: Optional[Line] = None
    partition: Optional[int] = None  # None: the brokers' partitioner decides
    source: Optional[str] = None  # "topic/partition/offset" of its message; None until the brokers have said it
    place: int = 0  # in its line
    attempts: int = 0

    @property
    def source_partition(self) -> int:
        return int((self.source or "").split("/")[-2])

    def handles(self, kind: type[Any]) -> list[Any]:
        return [buffer for buffer in self.job["buffers"].values() if isinstance(buffer, kind)]

    @property
    def statics(self) -> list[Static]:
        return self.handles(Static)

    @property
    def residents(self) -> list[Resident]:
        return list(dict.fromkeys(self.handles(Resident)))

    def note_residents(self, result: Mapping[str, Any]) -> None:
        """What a good answer says of them."""
        outputs = {output["name"]: output for output in result["outputs"]}
        for name, resident in self.job["buffers"].items():
            if not isinstance(resident, Resident) or resident.name not in result.get("residents", {}):
                continue
            whole = next((outputs[output.get("as", name)].get("data") for output in self.job["outputs"]
                          if output["buffer"] == name and not {"offset", "bytes"} & output.keys()), None)
            resident.note(result["residents"][resident.name], whole)


def code_of(result: Mapping[str, Any]) -> str:
    """The error's; "" where there is none."""
    code: str = result["error"]["code"] if "error" in result else ""
    return code
