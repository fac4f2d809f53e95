#!/usr/bin/env python3
"""scripts/scale_demo: three servers behind HAProxy on PostgreSQL and an S3
store, of which the one that leads is killed while a device measures."""

import os
import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
MISSING_PACKAGES = 77


class ScaleDemoTest(unittest.TestCase):

    def test_the_job_outlives_the_leader(self):
        demo = subprocess.run(
            [SOURCE / 'scripts/scale_demo', '--no_build'],
            env={**os.environ, 'OPTFARM_BIN_DIR': str(BUILD / 'bin')},
            capture_output=True, text=True, check=False)
        if demo.returncode == MISSING_PACKAGES:
            self.skipTest(demo.stderr)
        self.assertEqual(demo.returncode, 0, demo.stderr)
        self.assertRegex(demo.stderr, r'killing server (\d), which leads\n'
                         r'.*server (?!\1)\d leads after \d+ ms\n')
        self.assertRegex(demo.stdout, r'int8 +scale_demo +2 ')
        self.assertIn('each of its 4 results is there once', demo.stderr)

    def test_explains_itself(self):
        wrong = subprocess.run([SOURCE / 'scripts/scale_demo', 'what'],
                               capture_output=True, text=True, check=False)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn('usage: scripts/scale_demo', wrong.stderr)


if __name__ == '__main__':
    unittest.main()
