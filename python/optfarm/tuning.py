"""Tunes: searches for the variants of a model that are worth having on given
devices."""

from __future__ import annotations

import dataclasses
import time
from typing import (Any, Dict, Iterator, List, Mapping, Optional, Sequence,
                    Union)

from . import progress as shown
from . import spec
from .calls import Calls, Message, quoted
from .errors import Timeout, TuneFailed

# A tune as the server's JSON has it, or its id.
TuneLike = Union[Mapping[str, Any], str]

_RUNNING = 'TUNE_RUNNING'
# The bounds that may be asked for, and what they are on.
_MEASURES = {'min_top1': 'TOP1_CHANGE', 'min_agreement': 'AGREEMENT',
             'min_snr': 'SNR'}


@dataclasses.dataclass(frozen=True)
class Variant:
    """One variant of the model on one device."""
    name: str
    # What it is in words: 'int8, 3 layers in float'.
    description: str
    # The job that made and measured it; Client.download_model takes it.
    job_id: str
    # To run it with.
    threads: int
    latency_ms: float
    # Ratio to the original's, with its 95 % interval.
    speedup: float
    speedup_low: float
    speedup_high: float
    file_bytes: int
    # Ratio to the original's.
    size_ratio: float
    # In the unit of the tune's measure: on the samples of the search, and on
    # those that it did not see; None where it was not judged on these.
    quality: float
    held_out_quality: Optional[float]
    meets_bound: bool
    # Another variant is at least as good in everything.
    dominated: bool


@dataclasses.dataclass(frozen=True)
class TunedDevice:
    """What a tune found for one device."""
    device: str
    # None: nothing keeps the bound.
    recommended: Optional[Variant]
    # Fastest first.
    variants: List[Variant]


def tuned(tune: Mapping[str, Any]) -> List[TunedDevice]:
    """What a tune has found for each device, so far or in the end."""
    return [_device(one)
            for one in (tune.get('report') or {}).get('devices') or ()]


def _device(found: Mapping[str, Any]) -> TunedDevice:
    variants = [_variant(one) for one in found.get('variants') or ()]
    chosen = [one for one in variants
              if one.name == found.get('recommended')
              and one.threads == found.get('recommended_threads', one.threads)]
    return TunedDevice(str(found['device']), chosen[0] if chosen else None,
                       variants)


def _variant(found: Mapping[str, Any]) -> Variant:
    held_out = found.get('held_out_quality')
    return Variant(
        name=str(found['name']), description=str(found['description']),
        job_id=str(found['job_id']), threads=int(found.get('threads') or 1),
        latency_ms=float(found['latency_us']) / 1000,
        speedup=float(found['speedup']),
        speedup_low=float(found['speedup_low']),
        speedup_high=float(found['speedup_high']),
        file_bytes=int(found['file_bytes']),
        size_ratio=float(found['size_ratio']),
        quality=float(found['quality']),
        held_out_quality=None if held_out is None else float(held_out),
        meets_bound=bool(found['meets_bound']),
        dominated=bool(found['dominated']))


def tune_id(tune: TuneLike) -> str:
    """The id of a tune."""
    return tune if isinstance(tune, str) else str(tune['tune_id'])


def tune_spec(job: Message, devices: List[str], *, objective: str,
              bounds: Mapping[str, Optional[float]],
              budget: Optional[spec.Duration],
              threads: Union[int, Sequence[int]], cpus: Sequence[int],
              numbers: Mapping[str, int], one_for_all: bool,
              fresh: bool) -> Dict[str, Any]:
    """optfarm.v1.TuneSpec."""
    if objective not in ('latency', 'size'):
        raise ValueError(f"objective is {objective!r}; give 'latency' or "
                         "'size'")
    if not devices:
        raise ValueError('a tune measures on devices; name some, or connect '
                         'one')
    made: Dict[str, Any] = {'job': job, 'devices': devices,
                            'objective': objective.upper()}
    given = {name: value for name, value in bounds.items()
             if value is not None}
    if len(given) > 1:
        raise ValueError(f"give one of {', '.join(sorted(bounds))}, not "
                         f"{', '.join(sorted(given))}")
    for name, value in given.items():
        made['measure'] = _MEASURES[name]
        made['bound'] = float(value or 0)
    if budget is not None:
        made['budget'] = spec.duration(budget, 'budget')
    if isinstance(threads, int):
        made['threads'] = threads
    else:
        made['thread_counts'] = [int(count) for count in threads]
    if cpus:
        made['cpus'] = [int(cpu) for cpu in cpus]
    made.update({name: int(value) for name, value in numbers.items() if value})
    made.update({name: True for name, value in
                 (('one_for_all', one_for_all), ('fresh', fresh)) if value})
    return made


class TuneCalls(Calls):
    """Tunes that were begun."""

    def find_tune(self, tune: TuneLike) -> Message:
        """One tune, with what it has found so far. Raises NotFound."""
        found: Message = self._http.call('GET',
                                         f'/v1/tunes/{quoted(tune_id(tune))}')
        return found

    def tunes(self) -> Iterator[Message]:
        """Tunes, newest first; of their reports only what is recommended."""
        yield from self._pages('/v1/tunes', {}, 'tunes')

    def cancel_tune(self, tune: TuneLike, reason: str = '') -> Message:
        """Ends a tune and its jobs; harmless where it has ended."""
        found: Message = self._http.call(
            'POST', f'/v1/tunes/{quoted(tune_id(tune))}:cancel',
            {'reason': reason})
        return found

    def wait_tune(self, tune: TuneLike, timeout: Optional[float] = None, *,
                  check: bool = True, progress: shown.Shown = None) -> Message:
        """Waits until a tune has ended and returns it. `progress` is as for
        Client.wait.

        Raises Timeout after `timeout` seconds and, with `check`, TuneFailed if
        it failed or was cancelled.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        line = shown.Line(progress)
        try:
            while True:
                found = self.find_tune(tune)
                line.show(f"tune {found['tune_id']}: {found['progress']}")
                if found['state'] != _RUNNING:
                    if check and found['state'] != 'TUNE_SUCCEEDED':
                        raise TuneFailed(found)
                    return found
                if deadline is not None and time.monotonic() + 1 > deadline:
                    raise Timeout(f"tune {found['tune_id']} runs after "
                                  f'{timeout} s; it goes on')
                time.sleep(1)
        finally:
            line.end()
