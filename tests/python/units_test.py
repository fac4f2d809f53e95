#!/usr/bin/env python3
"""systemd takes the units in deploy/ without a complaint."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]


class UnitsTest(unittest.TestCase):

    @unittest.skipUnless(shutil.which('systemd-analyze'), 'no systemd here')
    def test_units_are_taken_without_a_complaint(self):
        units = sorted((SOURCE / 'deploy/systemd').glob('*.service'))
        self.assertEqual(len(units), 3)
        with tempfile.TemporaryDirectory() as folder:
            for unit in units:
                # The programs need not be installed to be named.
                text = unit.read_text().replace(f'/usr/bin/{unit.stem}',
                                                '/bin/true')
                copy = pathlib.Path(folder) / unit.name
                copy.write_text(text)
                run = subprocess.run(
                    ['systemd-analyze', 'verify', str(copy)],
                    capture_output=True, text=True, check=False)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertNotIn(unit.name, run.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
