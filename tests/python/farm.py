"""A real server with a worker and agents, for the tests of this folder."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

BIN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else 'build/dev/bin')
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TOKEN = 'the-operators-token'

sys.path.insert(0, str(SOURCE / 'python'))
sys.dont_write_bytecode = True

# Longer than anything takes on a busy machine; reached only by failures.
PATIENCE = 120


class Farm:
    """A server that wants tokens, a worker and agents, each a name and its
    tags; gone when it is closed."""

    def __init__(self, worker=True, agents=()):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='optfarm-python-'))
        self.token_file = self.folder / 'token'
        self.token_file.write_text(TOKEN + '\n')
        self._programs = []
        line = self._start('server', [
            f'--data_dir={self.folder}/data', '--grpc=127.0.0.1:0',
            '--http=127.0.0.1:0', f'--token_file={self.token_file}'
        ])
        self.grpc = re.search(r'grpc=(\S+)', line).group(1)
        self.url = 'http://' + re.search(r'http=(\S+)', line).group(1)
        if worker:
            self._start('worker', [
                f'--server={self.grpc}', '--name=w1',
                f'--work_dir={self.folder}/w1',
                f'--token_file={self.token_file}'
            ])
        for name, *tags in agents:
            self._start('agent', [
                f'--server={self.grpc}', f'--name={name}',
                f'--work_dir={self.folder}/{name}',
                f'--token_file={self.token_file}',
                *([f"--tags={','.join(tags)}"] if tags else [])
            ], f'{name}.log')

    def _start(self, name, flags, log=None):
        log = self.folder / (log or f'{name}.log')
        with open(log, 'wb') as out:
            program = subprocess.Popen([str(BIN / f'optfarm-{name}'), *flags],
                                       stderr=out, stdout=out)
        self._programs.append(program)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and program.poll() is None:
            for line in log.read_text().splitlines():
                if ' ready ' in line:
                    return line
            time.sleep(0.02)
        raise RuntimeError(f'{name} did not start: {log.read_text()}')

    def environment(self):
        return {**os.environ, 'OPTFARM_URL': self.url, 'OPTFARM_TOKEN': TOKEN}

    def close(self):
        for program in reversed(self._programs):
            program.terminate()
            program.wait(PATIENCE)
        shutil.rmtree(self.folder)
