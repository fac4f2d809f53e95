"""Minimal HTTP for this package: one request, its response, retries after
transient errors."""

from __future__ import annotations

import http.client
import json
import random
import ssl
import time
import urllib.parse
from typing import (Any, Iterator, Mapping, NamedTuple, Optional, Tuple,
                    Union)

from .errors import ApiError, Unavailable, error_of

Body = Union[bytes, None]

_ATTEMPTS = 6
_LONGEST_PAUSE = 10.0


class _Server(NamedTuple):
    host: str
    port: Optional[int]
    tls: bool


def _server(url: str) -> _Server:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ('http', 'https') or not parts.hostname:
        raise ValueError(f'{url!r} is not http://HOST:PORT or '
                         'https://HOST:PORT')
    if parts.path not in ('', '/') or parts.query or parts.fragment:
        raise ValueError(f'{url!r} names more than a server')
    return _Server(parts.hostname, parts.port, parts.scheme == 'https')


class Transport:
    """Requests to one server, or to the first of several that answers.

    A connection is made for each request: a thread of its own may use the same
    object at the same time.
    """

    def __init__(self, url: str, token: Optional[str], timeout: float,
                 ca_file: Optional[str], cert_file: Optional[str],
                 key_file: Optional[str]) -> None:
        self._servers = [_server(one.strip()) for one in url.split(',')]
        # Requests go there until it does not answer. Threads may move it on
        # together: any server is right.
        self._chosen = 0
        self._timeout = timeout
        self._headers = {'User-Agent': 'optfarm-python'}
        if token:
            self._headers['Authorization'] = f'Bearer {token}'
        self._tls: Optional[ssl.SSLContext] = None
        if any(server.tls for server in self._servers):
            self._tls = ssl.create_default_context(cafile=ca_file)
            if cert_file:
                self._tls.load_cert_chain(cert_file, key_file)

    @staticmethod
    def _connect(server: _Server, timeout: float,
                 tls: Optional[ssl.SSLContext]) -> http.client.HTTPConnection:
        if server.tls:
            return http.client.HTTPSConnection(server.host, server.port,
                                               timeout=timeout, context=tls)
        return http.client.HTTPConnection(server.host, server.port,
                                          timeout=timeout)

    def _go_on(self, server: _Server) -> None:
        """The next requests go to the server after this one."""
        number = self._servers.index(server)
        if self._chosen == number:
            self._chosen = (number + 1) % len(self._servers)

    def send(self, method: str, path: str, body: Body = None,
             headers: Optional[Mapping[str, str]] = None,
             timeout: Optional[float] = None
             ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Sends one request; the caller reads the answer and closes.

        Raises: ApiError for a status of 400 and above; Unavailable when there
        is no answer.
        """
        server = self._servers[self._chosen]
        connection = self._connect(server, timeout or self._timeout, self._tls)
        try:
            connection.request(method, path, body,
                               {**self._headers, **(headers or {})})
            response = connection.getresponse()
            if response.status < 400:
                return connection, response
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._go_on(server)
            raise Unavailable(0, {
                'code': 'UNAVAILABLE',
                'detail': f'no answer from {server.host}:{server.port}: '
                          f'{error}; is optfarm-server running there with '
                          '--http? url or OPTFARM_URL names another'
            }) from error
        connection.close()
        if response.status == 503:
            self._go_on(server)
        try:
            problem = json.loads(text)
        except ValueError:
            problem = {'detail': text[:200].decode('utf-8', 'replace')}
        raise error_of(response.status, problem)

    def call(self, method: str, path: str, body: Any = None,
             headers: Optional[Mapping[str, str]] = None,
             data: Body = None, again: bool = True) -> Any:
        """One call with JSON both ways, or with bytes as the request. Tried
        again after errors that pass, unless `again` is False because the call
        may not be made twice."""
        sent = dict(headers or {})
        if body is not None:
            data = json.dumps(body).encode()
            sent['Content-Type'] = 'application/json'
        for attempt in range(_ATTEMPTS):
            try:
                connection, response = self.send(method, path, data, sent)
                try:
                    return json.loads(response.read() or b'null')
                except (OSError, http.client.HTTPException) as error:
                    raise Unavailable(
                        0, {'detail': f'the answer broke off: {error!r}'}
                    ) from error
                finally:
                    connection.close()
            except ApiError as error:
                passes = error.status in (0, 429, 503, 504)
                if not again or not passes or attempt + 1 == _ATTEMPTS:
                    raise
            pause = min(_LONGEST_PAUSE, 0.2 * 2**attempt)
            time.sleep(pause * random.uniform(0.5, 1.0))
        raise AssertionError('not reached')

    def events(self, path: str, last_id: str, timeout: float
               ) -> Iterator[Tuple[str, str, Any]]:
        """(id, name, data) of server-sent events until the stream ends."""
        headers = {'Accept': 'text/event-stream'}
        if last_id:
            headers['Last-Event-ID'] = last_id
        connection, response = self.send('GET', path, None, headers, timeout)
        try:
            fields: dict[str, str] = {}
            for raw in response:
                line = raw.decode().rstrip('\r\n')
                if line.startswith(':'):
                    continue
                if line:
                    name, _, value = line.partition(':')
                    fields[name] = value[1:] if value[:1] == ' ' else value
                    continue
                if 'data' in fields:
                    yield (fields.get('id', ''),
                           fields.get('event', 'message'),
                           json.loads(fields['data']))
                fields = {}
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(
                0, {'detail': f'the stream broke off: {error!r}'}) from error
        finally:
            connection.close()
