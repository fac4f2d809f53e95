#!/usr/bin/env python3
"""What the containers of compose.scale.yaml run, without containers: the script
that makes the database, the S3 store with a key of its own, and HAProxy's
configuration with the environment that it is given there."""

import getpass
import glob
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.argv.pop(1)
PATIENCE = 60


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as one:
        return one.getsockname()[1]


def proxy_environment():
    """Of the service proxy; its lines are plain NAME: VALUE."""
    text = (SOURCE / 'deploy/container/compose.scale.yaml').read_text()
    service = text[text.index('\n  proxy:'):text.index('\n  worker:')]
    return dict(re.findall(r'(?m)^ +(OPTFARM_\w+): "?([^"\n]+)"?$', service))


class ContainersTest(unittest.TestCase):

    def test_the_database_is_made_once_and_wants_its_password(self):
        if not glob.glob('/usr/lib/postgresql/*/bin/initdb'):
            self.skipTest('PostgreSQL is not installed')
        folder = pathlib.Path(tempfile.mkdtemp(prefix='optfarm_pg_', dir='/tmp'))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        account = []
        if getpass.getuser() == 'root':
            shutil.chown(folder, 'postgres')
            account = ['runuser', '-u', 'postgres', '--']
        port = str(free_port())

        def ask(password, statement):
            return subprocess.run(
                ['psql', '-qAt', '-h', '127.0.0.1', '-p', port, '-U', 'optfarm',
                 '-c', statement, 'optfarm'],
                env={**os.environ, 'PGPASSWORD': password},
                capture_output=True, text=True, check=False)

        def start():
            server = subprocess.Popen(
                account + [SOURCE / 'deploy/container/start_postgres',
                           folder / 'data', '-p', port, '-c', 'fsync=off'],
                cwd='/', env={**os.environ, 'PGPASSWORD': 'first'},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + PATIENCE
            while ask('first', 'SELECT 1').returncode != 0:
                self.assertIsNone(server.poll())
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.1)
            return server

        def stop(server):
            # Of the account that runs it, which runuser waits for.
            pid = (folder / 'data/postmaster.pid').read_text().split('\n')[0]
            os.kill(int(pid), 2)
            server.wait(PATIENCE)

        server = start()
        try:
            # On loopback the cluster asks as it does everywhere.
            wrong = ask('wrong', 'SELECT 1')
            self.assertNotEqual(wrong.returncode, 0)
            self.assertIn('password authentication failed', wrong.stderr)
            self.assertEqual(ask('first', 'CREATE TABLE kept()').returncode, 0)
        finally:
            stop(server)
        server = start()
        try:
            self.assertEqual(ask('first', 'TABLE kept').returncode, 0)
        finally:
            stop(server)

    def test_the_s3_store_takes_a_key_and_keeps_it_to_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            store = subprocess.Popen(
                [SOURCE / 'tests/support/s3_server.py', folder,
                 '--listen=127.0.0.1', f'--port={free_port()}',
                 '--bucket=optfarm'],
                env={**os.environ, 'S3_SECRET_KEY': '0123456789abcdef'},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            said = ''
            for line in store.stdout:
                said += line
                if line.startswith('S3_READY'):
                    break
            if not said and store.wait(PATIENCE) == 77:
                self.skipTest(store.stderr.read())
            self.assertNotIn('0123456789abcdef', said)
            endpoint = re.search(r'S3_ENDPOINT=(\S+)', said)[1]
            # A colon within the name of the key, which --user would split at.
            host = endpoint.removeprefix('http://')
            codes = [subprocess.run(
                ['curl', '-s', '-o', '/dev/null', '-w', '%{http_code}',
                 '--aws-sigv4', 'aws:amz:us-east-1:s3',
                 '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD',
                 f'http://test%3Atester:{secret}@{host}/optfarm'],
                capture_output=True, text=True, check=False).stdout
                for secret in ('0123456789abcdef', 'testing')]
            store.terminate()
            store.communicate()
        self.assertEqual(codes, ['200', '403'])

    def test_haproxy_takes_its_configuration(self):
        haproxy = shutil.which('haproxy', path=os.environ['PATH'] + ':/usr/sbin')
        if haproxy is None:
            self.skipTest('haproxy is not installed')
        check = subprocess.run(
            [haproxy, '-c', '-f', SOURCE / 'deploy/haproxy/haproxy.cfg'],
            env={**os.environ, **proxy_environment()},
            capture_output=True, text=True, check=False)
        self.assertEqual(check.returncode, 0, check.stderr)
        self.assertIn('is valid', check.stdout + check.stderr)


if __name__ == '__main__':
    unittest.main()
