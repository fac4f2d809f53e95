"""Files on their way to the server: by digest, in parts, and only once."""

from __future__ import annotations

import hashlib
import pathlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from .transport import Transport

# UNITS: bytes sent so far and to be sent in all.
Progress = Callable[[int, int], None]

_PART_BYTES = 8 << 20
# The server's limit of one question.
_MOST_DIGESTS = 10000


class File:
    """A local file by its digest."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        digest = hashlib.sha256()
        self.size = 0
        with open(path, 'rb') as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
                self.size += len(piece)
        self.sha256 = digest.hexdigest()

    def digest(self) -> Dict[str, str]:
        """The message optfarm.v1.Digest."""
        return {'sha256': self.sha256, 'size_bytes': str(self.size)}

    def named(self) -> Dict[str, Any]:
        """The message optfarm.v1.NamedBlob."""
        return {'name': self.path.name, 'digest': self.digest()}


def missing(http: Transport, files: Sequence[File]) -> List[File]:
    """Those that the server does not have, each once."""
    by_sha = {file.sha256: file for file in files}
    distinct = list(by_sha.values())
    found: List[File] = []
    for at in range(0, len(distinct), _MOST_DIGESTS):
        asked = [file.digest() for file in distinct[at:at + _MOST_DIGESTS]]
        answer = http.call('POST', '/v1/blobs:findMissing', {'digests': asked})
        found += [by_sha[one['sha256']] for one in answer['missing']]
    return found


def send(http: Transport, files: Sequence[File],
         progress: Optional[Progress]) -> None:
    """Uploads what is missing, and resumes interrupted uploads."""
    wanted = missing(http, files)
    total = sum(file.size for file in wanted)
    done = 0
    for file in wanted:
        for sent in _send_one(http, file):
            if progress:
                progress(done + sent, total)
        done += file.size


def _send_one(http: Transport, file: File) -> Iterator[int]:
    path = f'/v1/blobs/{file.sha256}'
    state = http.call('GET', f'{path}/upload?digest.size_bytes={file.size}')
    if state['complete']:
        return
    offset = int(state['committed_bytes'])
    with open(file.path, 'rb') as source:
        source.seek(offset)
        while True:
            piece = source.read(_PART_BYTES)
            headers = {}
            if piece:
                last = offset + len(piece) - 1
                headers['Content-Range'] = f'bytes {offset}-{last}/{file.size}'
            # Sending a part twice is harmless: what is there is skipped.
            http.call('PUT', path, headers=headers, data=piece)
            offset += len(piece)
            yield offset
            if offset >= file.size:
                return
