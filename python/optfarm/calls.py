"""What all groups of calls share."""

from __future__ import annotations

import urllib.parse
from typing import Any, Dict, Iterator, Mapping, Union

from .transport import Transport

# A message as the server's JSON has it.
Message = Dict[str, Any]
# An id, or a message that has it.
JobLike = Union[str, Mapping[str, Any]]


def quoted(text: str) -> str:
    """Text as one part of a path."""
    return urllib.parse.quote(text, safe='')


def job_id(job: JobLike) -> str:
    """Of a job, or an id itself."""
    return job if isinstance(job, str) else str(job['job_id'])


class Calls:
    """Calls of one server."""

    _http: Transport

    def _get(self, path: str, parameters: Mapping[str, Any]) -> Any:
        """Parameters that are None or empty are left out."""
        asked = {key: 'true' if value is True else str(value)
                 for key, value in parameters.items()
                 if value not in (None, '', False)}
        query = f'?{urllib.parse.urlencode(asked)}' if asked else ''
        return self._http.call('GET', path + query)

    def _pages(self, path: str, parameters: Mapping[str, Any],
               key: str) -> Iterator[Message]:
        asked = dict(parameters)
        while True:
            answer = self._get(path, asked)
            yield from answer[key]
            asked['page_token'] = answer['next_page_token']
            if not asked['page_token']:
                return
