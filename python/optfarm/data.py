"""What a model is fed and which answers are right: optfarm.v1.DataSource."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any, Dict, Optional, Tuple, Union

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


def samples(folder: Path, *, mean: Optional[float] = None,
            std: Optional[float] = None) -> Source:
    """A folder of pictures, sounds or TFRecord files, with its subfolders. They
    feed every input that no input_file feeds."""
    root = pathlib.Path(folder)
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
                  mean=mean, std=std)


def input_file(path: Path, input: str = '', *,  # pylint: disable=redefined-builtin
               member: str = '', mean: Optional[float] = None,
               std: Optional[float] = None, layout: str = '') -> Source:
    """An array (.npy, .npz, IDX) or TFRecord file that feeds one input, which
    need not be named when the model has only one. `member` is the array of an
    .npz file, or the feature of a TFRecord file."""
    file = pathlib.Path(path)
    return Source('INPUT', ((file.name, file),), input, member, mean, std,
                  layout)


def labels(path: Path, *, member: str = '') -> Source:
    """A file with the samples' classes. `member` as for input_file."""
    file = pathlib.Path(path)
    return Source('LABELS', ((file.name, file),), member=member)
