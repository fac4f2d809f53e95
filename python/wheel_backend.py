"""Builds the wheel with the standard library alone (PEP 517 and PEP 660), so
that `pip install` works without a network and without build tools. The package
is pure Python: a wheel is its files in a zip archive, and three files that
describe them."""

from __future__ import annotations

import base64
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile
from typing import Any, Dict, List, Mapping, Optional, Tuple

_HERE = pathlib.Path(__file__).resolve().parent
_PACKAGE = 'optfarm'
_TAG = 'py3-none-any'
# The zip format knows nothing earlier; equal sources make equal bytes.
_DATE = (1980, 1, 1, 0, 0, 0)
_Settings = Optional[Mapping[str, Any]]


def _project() -> Dict[str, str]:
    """Texts of [project]. Python 3.9 has no TOML reader, and these few lines
    need none."""
    text = (_HERE / 'pyproject.toml').read_text(encoding='utf-8')
    section = text.split('[project]', 1)[1].split('\n[', 1)[0]
    return dict(re.findall(r'^([a-z-]+) = "([^"]*)"$', section, re.MULTILINE))


def _metadata(project: Mapping[str, str]) -> str:
    return '\n'.join([
        'Metadata-Version: 2.1',
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        'License: Apache-2.0',
        f"Requires-Python: {project['requires-python']}",
        'Provides-Extra: pandas',
        "Requires-Dist: pandas; extra == 'pandas'",
        'Description-Content-Type: text/markdown',
        '',
        (_HERE / 'README.md').read_text(encoding='utf-8'),
    ])


def _sources() -> List[pathlib.Path]:
    return sorted(path for path in (_HERE / _PACKAGE).rglob('*')
                  if path.suffix == '.py' or path.name == 'py.typed')


def _write(folder: str, files: List[Tuple[str, bytes]]) -> str:
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    info = f'{stem}.dist-info'
    files = [*files, (f'{info}/METADATA', _metadata(project).encode()),
             (f'{info}/WHEEL', 'Wheel-Version: 1.0\n'
              'Generator: optfarm\nRoot-Is-Purelib: true\n'
              f'Tag: {_TAG}\n'.encode())]
    record = ''
    name = f'{stem}-{_TAG}.whl'
    with zipfile.ZipFile(pathlib.Path(folder) / name, 'w',
                         zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files:
            wheel.writestr(zipfile.ZipInfo(path, _DATE), content,
                           zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(
                hashlib.sha256(content).digest()).rstrip(b'=').decode()
            record += f'{path},sha256={digest},{len(content)}\n'
        record += f'{info}/RECORD,,\n'
        wheel.writestr(zipfile.ZipInfo(f'{info}/RECORD', _DATE), record)
    return name


def build_wheel(wheel_directory: str, config_settings: _Settings = None,
                metadata_directory: Optional[str] = None) -> str:
    """PEP 517."""
    return _write(wheel_directory,
                  [(path.relative_to(_HERE).as_posix(), path.read_bytes())
                   for path in _sources()])


def build_editable(wheel_directory: str, config_settings: _Settings = None,
                   metadata_directory: Optional[str] = None) -> str:
    """PEP 660: a line that adds this folder to the path."""
    return _write(wheel_directory,
                  [(f'{_PACKAGE}.pth', f'{_HERE}\n'.encode())])


def build_sdist(sdist_directory: str,
                config_settings: _Settings = None) -> str:
    """PEP 517."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    files = [*_sources(), _HERE / 'pyproject.toml', _HERE / 'README.md',
             _HERE / 'wheel_backend.py']
    target = pathlib.Path(sdist_directory) / f'{stem}.tar.gz'
    with tarfile.open(target, 'w:gz', format=tarfile.PAX_FORMAT) as archive:
        for path in files:
            archive.add(path, f'{stem}/{path.relative_to(_HERE).as_posix()}')
        content = _metadata(project).encode()
        info = tarfile.TarInfo(f'{stem}/PKG-INFO')
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return target.name
