#!/usr/bin/env python3
"""What scripts/farm does around the programs, which here only say that they
are ready and wait for SIGTERM.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ('optfarm-server', 'optfarm-worker', 'optfarm-agent')

PROGRAM = r'''#!/usr/bin/env python3
import os, pathlib, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
name = pathlib.Path(sys.argv[0]).name
if os.environ.get('REFUSE') == name: sys.exit(f'{name}: no room here')
print(f'I x: {name} ready grpc=127.0.0.1:4711 http=127.0.0.1:4712', *sys.argv[1:], flush=True)
signal.pause()
'''


class FarmTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / 'bin').mkdir()
        for name in PROGRAMS:
            (self.root / 'bin' / name).write_text(PROGRAM)
            (self.root / 'bin' / name).chmod(0o755)
        self.farm = self.root / 'farm'
        self.addCleanup(self.run_farm, 'stop')

    def run_farm(self, verb, **environment):
        run = subprocess.run(
            [str(SOURCE / 'scripts/farm'), verb],
            env={**os.environ, 'OPTFARM_FARM_DIR': str(self.farm),
                 'OPTFARM_BIN_DIR': str(self.root / 'bin'), **environment},
            capture_output=True, text=True, check=False)
        self.said = run.stdout + run.stderr
        return run.returncode

    def test_starts_tells_and_stops(self):
        self.assertEqual(self.run_farm('status'), 1)
        self.assertEqual(self.run_farm('start'), 0, self.said)
        self.assertEqual((self.farm / 'address').read_text(),
                         '127.0.0.1:4711\n')
        self.assertIn('the page is at http://127.0.0.1:4712/', self.said)
        self.assertIn('--http=127.0.0.1:7071',
                      (self.farm / 'optfarm-server.log').read_text())
        for name in PROGRAMS[1:]:
            self.assertIn('--server=127.0.0.1:4711',
                          (self.farm / f'{name}.log').read_text())
        self.assertEqual(self.run_farm('status'), 0)
        self.assertIn('address 127.0.0.1:4711', self.said)
        self.assertEqual(self.run_farm('start'), 1)
        self.assertIn('already running at 127.0.0.1:4711', self.said)
        self.assertEqual(self.run_farm('stop'), 0)
        self.assertEqual(self.run_farm('status'), 1)

    def test_the_data_folder_is_the_servers_to_make(self):
        # Which keeps others out of it.
        self.run_farm('start')
        self.assertIn(f'--data_dir={self.farm}/data',
                      (self.farm / 'optfarm-server.log').read_text())
        self.assertFalse((self.farm / 'data').exists())

    def test_one_that_ends_at_once_is_shown_and_the_others_stopped(self):
        self.assertEqual(self.run_farm('start', REFUSE='optfarm-agent'), 1)
        self.assertIn('optfarm-agent: no room here', self.said)
        self.assertEqual(self.run_farm('status'), 1)
        self.assertNotIn('runs, process', self.said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
