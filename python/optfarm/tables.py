"""Results as flat mappings, and as a DataFrame where pandas is installed."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, Dict, Iterable, List, Mapping

# 64-bit integers are texts in protobuf's JSON; these fields are numbers.
_INTEGERS = ('_bytes', 'result_id', '_khz', '_mc', '_samples', '_nodes',
             'samples', 'nodes')


def _value(name: str, value: Any) -> Any:
    if isinstance(value, str) and name.endswith(_INTEGERS):
        try:
            return int(value)
        except ValueError:
            return value
    return value


def _flatten(prefix: str, fields: Mapping[str, Any],
             made: Dict[str, Any]) -> None:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            _flatten(f'{prefix}{name}_', value, made)
        else:
            made[prefix + name] = _value(name, value)


def to_dicts(found: Iterable[Any]) -> List[Dict[str, Any]]:
    """Flat mappings from the server's messages or this package's dataclasses:
    {'measurement': {'median_us': 5.0}} becomes {'measurement_median_us': 5.0}.
    """
    rows: List[Dict[str, Any]] = []
    for one in found:
        if dataclasses.is_dataclass(one) and not isinstance(one, type):
            one = dataclasses.asdict(one)
        if not isinstance(one, Mapping):
            raise TypeError(f'{one!r} has no fields; give results, devices, '
                            'jobs, or rows of a report')
        row: Dict[str, Any] = {}
        _flatten('', one, row)
        rows.append(row)
    return rows


def to_dataframe(found: Iterable[Any]) -> Any:
    """The same as a pandas.DataFrame, times as times. Raises ImportError
    without pandas."""
    try:
        pandas: Any = importlib.import_module('pandas')
    except ImportError:
        raise ImportError('to_dataframe needs pandas (pip install pandas); '
                          'to_dicts does without') from None
    frame = pandas.DataFrame(to_dicts(found))
    for name in frame.columns:
        if str(name).endswith(('_time', 'taken_at', 'last_seen')):
            frame[name] = frame[name].map(
                lambda text: pandas.Timestamp(text or None))
    return frame
