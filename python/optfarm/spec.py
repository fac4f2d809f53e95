"""Words of the caller as fields of optfarm.v1.JobSpec, checked as far as that
needs no server."""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import (Any, Dict, Iterable, List, Mapping, Optional, Sequence,
                    Tuple, Union)

from .data import Path

Shape = Sequence[Optional[int]]
# 'image:1,224,224,3', {'image': (1, 224, 224, 3)}, a list of such texts, or of
# mappings with the fields of optfarm.v1.TensorSpec.
Inputs = Union[str, Mapping[str, Optional[Shape]],
               Sequence[Union[str, Mapping[str, Any]]], None]
# UNITS: seconds, or a text such as '90s', '5m' or '2h'.
Duration = Union[float, int, str]
Recipe = Union[str, 'os.PathLike[str]', Mapping[str, Any]]

_INPUT_FORMS = ("give 'image:1,224,224,3', {'image': (1, 224, 224, 3)} with "
                "None for an unknown size, or [{'name': 'image', 'shape': "
                '[1, 224, 224, 3]}]')
_UNITS = {'ms': 0.001, 's': 1.0, 'm': 60.0, 'h': 3600.0, 'd': 86400.0}
_FORMATS = ('.pb', '.onnx', '.tflite')


def _size(value: Any, name: str) -> int:
    if value is None or value in ('?', '-1'):
        return -1
    if isinstance(value, str) and value.isdigit():
        return int(value)
    # numpy's integers too, but no booleans.
    if hasattr(value, '__index__') and not isinstance(value, bool):
        number = int(value)
        if number >= -1:
            return number
    raise ValueError(f'inputs: {value!r} is no size in the shape of {name!r}; '
                     + _INPUT_FORMS)


def _tensor(name: Any, shape: Any, dtype: Any = None) -> Dict[str, Any]:
    if not isinstance(name, str) or not name:
        raise ValueError(f'inputs: {name!r} is no name of a tensor; '
                         + _INPUT_FORMS)
    made: Dict[str, Any] = {'name': name}
    if dtype:
        made['dtype'] = str(dtype)
    if shape is None:
        return made
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Iterable):
        raise TypeError(f'inputs: the shape of {name!r} is {shape!r}; '
                        + _INPUT_FORMS)
    made['shape'] = [str(_size(size, name)) for size in shape]
    made['shape_known'] = True
    return made


def _from_text(text: str) -> Dict[str, Any]:
    # 'name', 'name:port', 'name:1,2,3', 'name:[1,2,3]', 'name:port:1,2'.
    head, colon, tail = text.strip().rpartition(':')
    if not colon:
        return _tensor(tail, None)
    sizes = tail.strip('[]').split(',')
    is_port = len(sizes) == 1 and not tail.startswith('[') and ':' not in head
    if is_port and tail.isdigit():
        return _tensor(text.strip(), None)
    return _tensor(head, [size.strip() for size in sizes if size.strip()])


def _from_mapping(given: Mapping[str, Any]) -> Dict[str, Any]:
    unknown = sorted(set(given) - {'name', 'shape', 'dtype', 'shape_known'})
    if unknown or 'name' not in given:
        what = (f'has unknown fields {unknown}' if unknown else
                "has no 'name'")
        raise ValueError(f'inputs: {dict(given)!r} {what}; ' + _INPUT_FORMS)
    return _tensor(given['name'], given.get('shape'), given.get('dtype'))


def tensors(given: Inputs) -> List[Dict[str, Any]]:
    """Graph inputs as the server's JSON."""
    if given is None:
        return []
    if isinstance(given, str):
        # A comma may part sizes or inputs; only a name follows the latter.
        words = re.split(r',(?=\s*[A-Za-z_.])(?![^\[]*\])', given)
        return [_from_text(word) for word in words if word.strip()]
    if isinstance(given, Mapping):
        if 'name' in given and isinstance(given['name'], str):
            return [_from_mapping(given)]
        return [_tensor(name, shape) for name, shape in given.items()]
    if not isinstance(given, Iterable):
        raise TypeError(f'inputs is {given!r}; ' + _INPUT_FORMS)
    made: List[Dict[str, Any]] = []
    for one in given:
        if isinstance(one, str):
            made.append(_from_text(one))
        elif isinstance(one, Mapping):
            made.append(_from_mapping(one))
        elif isinstance(one, tuple) and len(one) == 2:
            made.append(_tensor(one[0], one[1]))
        else:
            raise TypeError(f'inputs has {one!r}; ' + _INPUT_FORMS)
    return made


def names(given: Union[str, Sequence[str]], field: str) -> List[str]:
    """A list of names, also from one text with commas."""
    if isinstance(given, str):
        return [word.strip() for word in given.split(',') if word.strip()]
    made = list(given)
    for one in made:
        if not isinstance(one, str):
            raise TypeError(f'{field} has {one!r}; give texts')
    return made


def seconds(given: Duration, field: str) -> float:
    """Seconds of a number, or of a text with a unit."""
    if isinstance(given, str):
        match = re.fullmatch(r'\s*([0-9.]+)\s*(ms|s|m|h|d)\s*', given)
        if not match:
            raise ValueError(f'{field} is {given!r}; give seconds, or a text '
                             "such as '90s', '5m' or '2h'")
        return float(match[1]) * _UNITS[match[2]]
    return float(given)


def duration(given: Duration, field: str) -> str:
    """google.protobuf.Duration as JSON."""
    return f'{seconds(given, field):.9f}'.rstrip('0').rstrip('.') + 's'


def is_graph(path: Path) -> bool:
    """Whether a model file to write is TensorFlow's, by the end of its
    name."""
    end = pathlib.Path(path).suffix.lower()
    if end not in _FORMATS:
        raise ValueError(f'{os.fspath(path)!r} does not say which format to '
                         f"write; end it in {', '.join(_FORMATS)}")
    return end == '.pb'


def out_formats(given: Union[str, Sequence[str]]) -> List[str]:
    """'tflite', 'pb,onnx' or a list of such words as values of
    optfarm.v1.ModelFormat."""
    made = []
    for one in names(given, 'out_formats'):
        if '.' + one.lower().lstrip('.') not in _FORMATS:
            raise ValueError(f'out_formats has {one!r}; give pb, onnx or '
                             'tflite')
        made.append(one.lower().lstrip('.').upper())
    return list(dict.fromkeys(made))


def is_recipe_file(recipe: Recipe) -> bool:
    """As optctl decides it: a path or an ending; else a built-in name."""
    if isinstance(recipe, Mapping):
        return False
    text = os.fspath(recipe)
    return (not isinstance(recipe, str) or '/' in text or
            text.lower().endswith(('.yaml', '.yml', '.json')))


def recipe_of_json(path: Path) -> Dict[str, Any]:
    """A recipe file with the fields of optfarm.v1.Recipe."""
    file = pathlib.Path(path).expanduser()
    try:
        made = json.loads(file.read_text(encoding='utf-8'))
    except FileNotFoundError:
        raise ValueError(f'there is no recipe file {str(file)!r}') from None
    except ValueError as error:
        raise ValueError(f'recipe {str(file)!r} is not JSON: {error}'
                         ) from None
    if not isinstance(made, dict):
        raise ValueError(f'recipe {str(file)!r} is not an object')
    return made


def conditions(*, threads: Sequence[int], min_runs: int,
               min_time: Optional[Duration], max_time: Optional[Duration],
               warmup_runs: int, precision: Optional[float],
               cpus: Sequence[int], cool_down: Optional[Duration],
               engines: Sequence[str]) -> Dict[str, Any]:
    """optfarm.v1.BenchmarkSpec without its devices."""
    made: Dict[str, Any] = {'threads': [int(one) for one in threads]}
    if precision is not None:
        if not 0 < precision < 1:
            raise ValueError(f'precision is {precision}; give a fraction '
                             'between 0 and 1, such as 0.02 for 2 %')
        made['precision'] = precision
    times: Tuple[Tuple[str, Optional[Duration]], ...] = (
        ('min_time', min_time), ('max_time', max_time),
        ('cool_down', cool_down))
    made.update({name: duration(value, name)
                 for name, value in times if value is not None})
    made.update({name: value for name, value in
                 (('min_runs', min_runs), ('warmup_runs', warmup_runs),
                  ('cpus', [int(one) for one in cpus]),
                  ('engines', list(engines))) if value})
    return made


def deadlines(given: Mapping[str, Duration]) -> Dict[str, str]:
    """optfarm.v1.Deadlines."""
    for name in given:
        if name not in ('queue', 'run', 'job'):
            raise ValueError(f'deadlines has {name!r}; give queue, run or job')
    return {name: duration(value, f'deadlines[{name!r}]')
            for name, value in given.items()}
