"""Calls about devices, tokens and the server itself."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Sequence

from . import spec
from .calls import Calls, Message, quoted
from .errors import ApiError


class OperatorCalls(Calls):
    """Devices, and what an operator does."""

    def devices(self) -> List[Message]:
        """All devices, with their states."""
        return list(self._pages('/v1/devices', {}, 'devices'))

    def device(self, name: str) -> Message:
        """One device. Raises NotFound."""
        found: Message = self._http.call('GET', f'/v1/devices/{quoted(name)}')
        return found

    def device_history(self, name: str) -> Iterator[Message]:
        """The states that a device was in, newest first: `time`, `state`,
        `reason`. Raises NotFound."""
        yield from self._pages(f'/v1/devices/{quoted(name)}/history', {},
                               'changes')

    def projects(self) -> Iterator[Message]:
        """Projects by name: what each uses and what it may."""
        yield from self._pages('/v1/projects', {}, 'projects')

    def store(self) -> Message:
        """How much the server stores, and what it evicted."""
        found: Message = self._http.call('GET', '/v1/store')
        return found

    def participants(self) -> Iterator[Message]:
        """Workers and agents that have called within the last hour."""
        yield from self._pages('/v1/participants', {}, 'participants')

    def change_device(self, name: str, change: str, *, reason: str = '',
                      duration: Optional[spec.Duration] = None,
                      tag: str = '') -> Message:
        """`change` is 'disable', 'enable', 'retire' or 'reserve'; the last has
        a `duration`, and `tag` says whose jobs may still have the device."""
        body: Dict[str, Any] = {'change': change.upper(), 'reason': reason,
                                'tag': tag}
        if duration is not None:
            body['duration'] = spec.duration(duration, 'duration')
        found: Message = self._http.call(
            'POST', f'/v1/devices/{quoted(name)}:change', body)
        return found

    def delete_device(self, name: str) -> Message:
        """Deletes the name of a device that is gone; returns the device as it
        was. Its results stay. Raises NotFound."""
        found: Message = self._http.call('DELETE',
                                         f'/v1/devices/{quoted(name)}')
        return found

    def blobs(self, *, project: str = '') -> Iterator[Message]:
        """The files that count for a project, by default the token's, largest
        first: `digest`, `uses`, `jobs`, `live_jobs`."""
        yield from self._pages('/v1/blobs', {'project': project}, 'blobs')

    def remove_blobs(self, *sha256: str, project: str = '') -> Message:
        """Removes files, at most 200, from a project. `removals` in the answer
        says what became of each; those that live jobs need stay."""
        done: Message = self._http.call(
            'POST', '/v1/blobs:remove',
            {'sha256': list(sha256), 'project': project})
        return done

    def whoami(self) -> Message:
        """The server's version, and what this token may do."""
        found: Message = self._http.call('GET', '/v1/whoami')
        return found

    def ready(self) -> bool:
        """Whether the server answers and takes jobs."""
        try:
            connection, _ = self._http.send('GET', '/readyz')
        except ApiError:
            return False
        connection.close()
        return True

    def create_token(self, name: str, scopes: Sequence[str], *,
                     lifetime: Optional[spec.Duration] = None,
                     project: str = '') -> Message:
        """A new token; `secret` in the answer is shown only once. Scopes:
        'submit', 'read', 'work', 'device', 'admin'."""
        body: Dict[str, Any] = {
            'name': name, 'project': project,
            'scopes': [scope.upper() for scope in spec.names(scopes, 'scopes')]
        }
        if lifetime is not None:
            body['lifetime'] = spec.duration(lifetime, 'lifetime')
        # A second call would make a second token.
        made: Message = self._http.call('POST', '/v1/tokens', body,
                                        again=False)
        return made

    def tokens(self) -> List[Message]:
        """All tokens, without their secrets."""
        found: List[Message] = self._http.call('GET', '/v1/tokens')['tokens']
        return found

    def revoke_token(self, token_id: str) -> Message:
        """Ends a token."""
        found: Message = self._http.call('DELETE',
                                         f'/v1/tokens/{quoted(token_id)}')
        return found

    def backup(self, name: str = '') -> Message:
        """Writes a copy of the metadata next to the server's database."""
        made: Message = self._http.call('POST', '/v1/store:backup',
                                        {'name': name}, again=False)
        return made

    def sql(self, query: str, *, max_rows: int = 0) -> List[Message]:
        """Rows of a SELECT on the results store, as mappings."""
        answer = self._http.call('POST', '/v1/store:sql',
                                 {'sql': query, 'max_rows': max_rows})
        columns = answer['columns']
        return [dict(zip(columns, map(_sql_value, row['values'])))
                for row in answer['rows']]

    def audit(self, **filters: Any) -> Iterator[Message]:
        """Who did what, newest first; filters: actor, project, method,
        from_time, until_time."""
        yield from self._pages('/v1/audit', filters, 'entries')


def _sql_value(value: Message) -> Any:
    if value.get('integer') is not None:
        return int(value['integer'])
    for kind in ('real', 'text', 'blob'):
        if value.get(kind) is not None:
            return value[kind]
    return None
