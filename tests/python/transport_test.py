#!/usr/bin/env python3
"""A client of several servers goes on to the next when one does not answer."""

import http.server
import pathlib
import socket
import sys
import threading
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / 'python'))

from optfarm.errors import ApiError, Unavailable  # noqa: E402
from optfarm.transport import Transport  # noqa: E402


def serve(status):
    """A server that answers everything with this status. Its address, and how
    many requests it got."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):

        def do_GET(self):
            seen.append(self.path)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b'{"port": %d}' % self.server.server_port)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f'http://127.0.0.1:{server.server_port}', seen


def nobody():
    """An address where nobody listens."""
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        return f'http://127.0.0.1:{free.getsockname()[1]}'


def transport(*urls):
    return Transport(','.join(urls), None, 10, None, None, None)


class TransportTest(unittest.TestCase):

    def test_goes_on_from_a_server_that_is_not_there(self):
        there, seen = serve(200)
        client = transport(nobody(), there)
        client.call('GET', '/a')
        client.call('GET', '/b')
        self.assertEqual(seen, ['/a', '/b'])

    def test_goes_on_from_a_server_that_does_not_serve(self):
        away, asked = serve(503)
        there, seen = serve(200)
        client = transport(away, there)
        client.call('GET', '/a')
        client.call('GET', '/b')
        self.assertEqual(asked, ['/a'])
        self.assertEqual(seen, ['/a', '/b'])

    def test_stays_where_a_call_is_wrong(self):
        first, asked = serve(404)
        second, seen = serve(200)
        client = transport(first, second)
        for _ in range(2):
            with self.assertRaises(ApiError):
                client.call('GET', '/a')
        self.assertEqual(len(asked), 2)
        self.assertEqual(seen, [])

    def test_says_who_did_not_answer(self):
        first = nobody()
        with self.assertRaisesRegex(Unavailable, first.rsplit(':', 1)[1]):
            transport(first, nobody()).call('GET', '/a', again=False)

    def test_every_address_is_checked(self):
        with self.assertRaisesRegex(ValueError, 'ftp'):
            transport('http://127.0.0.1:1', 'ftp://127.0.0.1:2')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
