"""What a model is fed and which answers are right: optfarm.v1.DataSource."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

Path = Union[str, 'os.PathLike[str]']

_SAMPLES = ('.jpg', '.jpeg', '.png', '.wav', '.tfrecord', '.tfrecords',
            '.record')


@dataclasses.dataclass(frozen=True)
class Source:
    """Files that serve one purpose. Made by samples, input_file and labels."""

    role: str
    # Each file's name for the server, and where it lies here.
    files: Tuple[Tuple[str, pathlib.Path], ...]
    input: str = ''
    member: str = ''
    # UNITS: grey levels. Fed as (value - mean) / std; None: not given.
    mean: Optional[float] = None
    std: Optional[float] = None
    # 'SAMPLE_AXIS_FIRST', 'CONSTANT', or '': shapes decide.
    layout: str = ''
    # Of SAMPLES: where they lie.
    folder: Optional[pathlib.Path] = None

    def fields(self) -> Dict[str, Any]:
        """The JSON of the message, but for the files."""
        given = {
            'input': self.input or None,
            'member': self.member or None,
            'mean': self.mean,
            'std': self.std,
            'layout': self.layout or None,
        }
        return {
            'role': self.role,
            **{key: value for key, value in given.items() if value is not None}
        }


# What `calibration` may be: a folder, a file for the only input, files by the
# inputs that they feed, sources, or several of these.
Calibration = Union[Path, Source, Mapping[str, Path],
                    Sequence[Union[Path, Source]], None]


def samples(folder: Path, *, mean: Optional[float] = None,
            std: Optional[float] = None) -> Source:
    """A folder of pictures, sounds or TFRecord files, with its subfolders. They
    feed every input that no input_file feeds."""
    root = pathlib.Path(folder).expanduser()
    if not root.is_dir():
        raise ValueError(f'there is no folder {str(root)!r}; calibration is '
                         'a folder of pictures, sounds or TFRecord files')
    found = sorted(path.relative_to(root).as_posix()
                   for path in root.rglob('*')
                   if path.suffix.lower() in _SAMPLES and path.is_file() and
                   not any(part.startswith('.')
                           for part in path.relative_to(root).parts))
    if not found:
        raise ValueError(f'{str(root)!r} has no file named like one of '
                         f"{', '.join(_SAMPLES)}")
    return Source('SAMPLES', tuple((name, root / name) for name in found),
                  mean=mean, std=std, folder=root)


def _file(path: Path, purpose: str) -> pathlib.Path:
    file = pathlib.Path(path).expanduser()
    if not file.is_file():
        raise ValueError(f'there is no file {str(file)!r} {purpose}')
    return file


def input_file(path: Path, input: str = '', *,  # pylint: disable=redefined-builtin
               member: str = '', mean: Optional[float] = None,
               std: Optional[float] = None, layout: str = '') -> Source:
    """An array (.npy, .npz, IDX) or TFRecord file that feeds one input, which
    need not be named when the model has only one. `member` is the array of an
    .npz file, or the feature of a TFRecord file. `layout` is
    'SAMPLE_AXIS_FIRST', 'CONSTANT' (fed whole with every sample), or empty:
    shapes decide."""
    if layout not in ('', 'SAMPLE_AXIS_FIRST', 'CONSTANT'):
        raise ValueError(f'layout is {layout!r}; give SAMPLE_AXIS_FIRST or '
                         'CONSTANT')
    file = _file(path, f'to feed input {input!r}' if input else 'to feed')
    return Source('INPUT', ((file.name, file),), input, member, mean, std,
                  layout)


def labels(path: Path, *, member: str = '') -> Source:
    """A file with the samples' classes. `member` as for input_file."""
    file = _file(path, 'with labels')
    return Source('LABELS', ((file.name, file),), member=member)


def _source(given: Union[Path, Source]) -> Source:
    if isinstance(given, Source):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(
            f'calibration has {given!r}; give a folder of samples, '
            "{'input': 'array.npy'}, or optfarm.samples and "
            'optfarm.input_file')
    path = pathlib.Path(given).expanduser()
    return input_file(path) if path.is_file() else samples(path)


def sources(calibration: Calibration, labels_file: Union[Path, Source, None],
            mean: Optional[float], std: Optional[float]) -> List[Source]:
    """All sources of a job. A scale is for those that have none."""
    if std == 0:
        raise ValueError('input_std is 0, which nothing can be divided by')
    found: List[Source] = []
    if isinstance(calibration, Mapping):
        found = [input_file(path, name) for name, path in calibration.items()]
    elif isinstance(calibration, (list, tuple)):
        found = [_source(one) for one in calibration]
    elif calibration is not None:
        assert not isinstance(calibration, Sequence) or isinstance(
            calibration, str)
        found = [_source(calibration)]
    found = [
        dataclasses.replace(one, mean=mean, std=std)
        if one.role != 'LABELS' and one.mean is None and one.std is None
        else one for one in found
    ]
    if labels_file is not None:
        found.append(labels_file if isinstance(labels_file, Source)
                     else labels(labels_file))
    return found
