"""The report of a job, as plain values."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Mapping, Optional, Tuple

from . import markdown, tables


def _number(value: Any) -> Optional[float]:
    # protobuf's JSON writes "NaN" and 64-bit integers as strings.
    return None if value is None else float(value)


@dataclasses.dataclass(frozen=True)
class Gate:
    """A bound of the recipe, and whether it held."""
    name: str
    passed: bool
    value: float
    bound: float
    message: str


@dataclasses.dataclass(frozen=True)
class Row:
    """One measurement: a variant on a device with a number of threads."""
    device: str
    variant: str
    threads: int
    median_ms: float
    # None from a job on this machine.
    p90_ms: Optional[float]
    runs: int
    noisy: bool
    file_bytes: int
    peak_memory_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Whether a variant is worth shipping on a device, as the server decided
    it and the results table shows it."""
    variant: str
    # Empty, with 0 threads, where no device measured the variant.
    device: str
    threads: int
    # 'BASELINE', 'YES', 'NO' or 'UNCLEAR'.
    answer: str
    # The answer and its reason in one line.
    text: str
    # What it was decided from; None where it is not known. Ratios to the
    # original, percentage points, and a share of samples.
    size_ratio: Optional[float]
    speedup: Optional[float]
    # The 95 % interval of `speedup`.
    speedup_low: Optional[float]
    speedup_high: Optional[float]
    top1_change: Optional[float]
    agreement: Optional[float]


@dataclasses.dataclass(frozen=True)
class Export:
    """The result in a format that the job was asked for."""
    # 'onnx' or 'tflite'.
    format: str
    # The file's name among those of the job; empty where the format cannot
    # hold the result.
    artifact: str
    size_bytes: int
    # Format, size, and how far the file's answers are from the graph's.
    summary: str
    # All that the format cannot hold.
    problems: Tuple[str, ...]
    # Largest difference of an answer, as a part of the output's largest
    # magnitude; None where they were not compared.
    relative_difference: Optional[float]


@dataclasses.dataclass(frozen=True)
class Report:
    """What a job found out. Made by optfarm.report and optfarm.run."""

    job_id: str
    state: str
    gates: Tuple[Gate, ...]
    rows: Tuple[Row, ...]
    # In the order of the results table; empty before the job has ended.
    verdicts: Tuple[Verdict, ...]
    # Top-1 accuracy on the labelled samples in percent, before and after; None
    # without labels.
    top1_before: Optional[float]
    top1_after: Optional[float]
    # Share of samples where both versions name the same class, in the worst
    # output that has classes; None without such an output.
    top1_agreement: Optional[float]
    bytes_before: int
    bytes_after: int
    failure: str
    # What to know before shipping; one sentence each.
    warnings: Tuple[str, ...] = ()
    name: str = ''
    recipe: str = ''
    model: str = ''
    exports: Tuple[Export, ...] = ()

    @property
    def passed(self) -> bool:
        """The job succeeded, with every gate."""
        return self.state == 'SUCCEEDED'

    def row(self, variant: str, device: Optional[str] = None,
            threads: Optional[int] = None) -> Row:
        """The first matching measurement. Raises KeyError."""
        for row in self.rows:
            if (row.variant == variant and device in (None, row.device) and
                    threads in (None, row.threads)):
                return row
        raise KeyError(f'no measurement of {variant!r} on '
                       f"{device or 'any device'} with "
                       f"{threads or 'any number of'} threads")

    def verdict(self, variant: str, device: Optional[str] = None,
                threads: Optional[int] = None) -> Verdict:
        """The first verdict that fits. Raises KeyError."""
        for verdict in self.verdicts:
            if (verdict.variant == variant and
                    device in (None, verdict.device) and
                    threads in (None, verdict.threads)):
                return verdict
        raise KeyError(f'no verdict on {variant!r} on '
                       f"{device or 'any device'} with "
                       f"{threads or 'any number of'} threads")

    def speedup(self, variant: str, device: Optional[str] = None,
                threads: Optional[int] = None) -> float:
        """Speed-up of `variant` over "float": the ratio of the median
        latencies."""
        row = self.row(variant, device, threads)
        base = self.row('float', row.device, row.threads)
        return base.median_ms / row.median_ms

    def to_dicts(self) -> List[Dict[str, Any]]:
        """A mapping for each measurement, with the verdict on it."""
        by_key = {(one.variant, one.device, one.threads): one
                  for one in self.verdicts}
        made = []
        for row in self.rows:
            fields = dataclasses.asdict(row)
            verdict = by_key.get((row.variant, row.device, row.threads))
            fields.update(
                speedup=verdict.speedup if verdict else None,
                answer=verdict.answer if verdict else '',
                verdict=verdict.text if verdict else '')
            made.append(fields)
        return made

    def to_dataframe(self) -> Any:
        """The same as a pandas.DataFrame. Raises ImportError without
        pandas."""
        return tables.to_dataframe(self.to_dicts())

    def to_markdown(self, title: str = '') -> str:
        """For a comment on a pull request: verdict, table, gates."""
        return markdown.comment(self, title)

    def _repr_html_(self) -> str:
        # What notebooks show.
        return markdown.html_page(self)


def _accuracy(report: Mapping[str, Any], key: str) -> Optional[float]:
    accuracy = report.get(key) or {}
    if int(accuracy.get('samples', 0)) == 0:
        return None
    return _number(accuracy.get('top1'))


def _agreement(report: Mapping[str, Any]) -> Optional[float]:
    # -1 stands for an output without classes.
    known = [float(output.get('top1_agreement', 0))
             for output in report.get('outputs_compared') or ()
             if int(output.get('samples', 0)) > 0]
    return min((one for one in known if one >= 0), default=None)


def _row(measurement: Mapping[str, Any]) -> Row:
    p90 = _number(measurement.get('p90_us'))
    return Row(device=measurement.get('device', ''),
               variant=measurement.get('variant', ''),
               threads=int(measurement.get('threads', 0)),
               median_ms=float(measurement.get('median_us', 0)) / 1000,
               p90_ms=None if p90 is None else p90 / 1000,
               runs=int(measurement.get('runs', 0)),
               noisy=bool(measurement.get('noisy', False)),
               file_bytes=int(measurement.get('file_size_bytes') or 0),
               peak_memory_bytes=int(
                   measurement.get('peak_memory_bytes') or 0))


def _gate(gate: Mapping[str, Any]) -> Gate:
    return Gate(name=gate.get('name', ''),
                passed=bool(gate.get('passed', False)),
                value=float(gate.get('value', 0)),
                bound=float(gate.get('bound', 0)),
                message=gate.get('message', ''))


def _made(export: Mapping[str, Any]) -> Export:
    return Export(format=str(export.get('format', '')).lower(),
                  artifact=export.get('artifact', ''),
                  size_bytes=int(export.get('size_bytes') or 0),
                  summary=export.get('summary', ''),
                  problems=tuple(export.get('problems') or ()),
                  relative_difference=_number(
                      export.get('relative_difference')))


def _verdict(verdict: Mapping[str, Any]) -> Verdict:
    return Verdict(variant=verdict.get('variant', ''),
                   device=verdict.get('device', ''),
                   threads=int(verdict.get('threads', 0)),
                   answer=verdict.get('answer', ''),
                   text=verdict.get('text', ''),
                   size_ratio=_number(verdict.get('size_ratio')),
                   speedup=_number(verdict.get('speedup')),
                   speedup_low=_number(verdict.get('speedup_low')),
                   speedup_high=_number(verdict.get('speedup_high')),
                   top1_change=_number(verdict.get('top1_change')),
                   agreement=_number(verdict.get('agreement')))


def _local_verdict(row: Mapping[str, Any], top1: Optional[float],
                   size: Optional[float]) -> Verdict:
    """Of a row of optctl's table."""
    bytes_after = _number(row.get('file_size_bytes'))
    now = _number(row.get('top1_percent'))
    return Verdict(
        variant=row.get('variant', ''), device=row.get('device') or '',
        threads=int(row.get('threads') or 0),
        answer=str(row.get('verdict') or '').upper(),
        text=str(row.get('verdict_text') or ''),
        size_ratio=bytes_after / size if bytes_after and size else None,
        speedup=_number(row.get('speedup')), speedup_low=None,
        speedup_high=None,
        top1_change=None if now is None or top1 is None else now - top1,
        agreement=_number(row.get('top1_agreement')))


def _as_job(printed: Mapping[str, Any]) -> Dict[str, Any]:
    """What optctl prints with -o json, with the fields of a job."""
    return {
        'job_id': printed.get('job_id', ''),
        'state': printed.get('state', ''),
        'failure': printed.get('failure'),
        'gates': printed.get('gates'),
        'report': printed.get('report'),
        'measurements': [row for row in printed['rows']
                         if row.get('median_us') is not None],
    }


def report(job: Mapping[str, Any]) -> Report:
    """The report of a job from Client.wait or Client.job, or of what
    `optctl run` and `optctl submit --wait` print with -o json."""
    rows = job.get('rows')
    if rows is not None:
        job = _as_job(job)
    made: Mapping[str, Any] = job.get('report') or {}
    failure: Mapping[str, Any] = job.get('failure') or {}
    spec: Mapping[str, Any] = job.get('spec') or {}
    before = int((made.get('size_before') or {}).get('file_bytes') or 0)
    top1 = _accuracy(made, 'float_accuracy')
    verdicts = tuple(_verdict(one) for one in job.get('verdicts') or ())
    if rows is not None:
        verdicts = tuple(_local_verdict(one, top1, before) for one in rows)
    return Report(
        job_id=job.get('job_id', ''),
        state=job.get('state', ''),
        gates=tuple(_gate(gate) for gate in job.get('gates') or ()),
        rows=tuple(_row(one) for one in job.get('measurements') or ()),
        verdicts=verdicts,
        top1_before=top1,
        top1_after=_accuracy(made, 'optimized_accuracy'),
        top1_agreement=_agreement(made),
        bytes_before=before,
        bytes_after=int((made.get('size_after') or {}).get('file_bytes') or 0),
        failure=failure.get('message', ''),
        warnings=tuple(made.get('warnings') or ()),
        name=spec.get('name', ''),
        recipe=str(made.get('recipe_name') or
                   (spec.get('recipe') or {}).get('name', '')),
        model=(spec.get('model') or {}).get('name', ''),
        exports=tuple(_made(one) for one in made.get('exports') or ()))
