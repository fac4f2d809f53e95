#!/usr/bin/env python3
"""What scripts/fuzz makes of what its targets say and leave: they are programs
here that speak as libFuzzer does.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]

# Fails on its first FAILURES runs, and takes as long as it may for the last.
TARGET = r'''#!/usr/bin/env python3
import os, pathlib, sys, time
flags = dict(argument[1:].split('=', 1) for argument in sys.argv if argument[0] == '-')
inputs, seeds = [pathlib.Path(argument) for argument in sys.argv[1:] if argument[0] != '-']
assert list(seeds.iterdir())
assert flags['timeout'] == '10' and flags['rss_limit_mb'] == '2048'
failures = pathlib.Path(flags['artifact_prefix'])
(inputs / f'new{len(list(inputs.iterdir()))}').write_text('x')
(failures / 'slow-unit-1').write_text('x')
print('#2\tINITED cov: 10 ft: 20 corp: 1/1b', file=sys.stderr)
print('#7\tNEW    cov: 31 ft: 41 corp: 2/2b', file=sys.stderr)
print('stat::number_of_executed_units: 500', file=sys.stderr)
if os.environ.get('BROKEN'): sys.exit('no shared library')
count = len([name for name in failures.iterdir() if name.name.startswith('crash')])
if count < int(os.environ.get('FAILURES', 0)):
    crash = failures / f'crash-{count}'
    if not os.environ.get('AGAIN'): crash.write_text('x')
    print(f'Test unit written to {crash}', file=sys.stderr)
    print('SUMMARY: AddressSanitizer: heap-use-after-free a.cc:7', file=sys.stderr)
    sys.exit(77)
time.sleep(int(flags['max_total_time']))
'''


class FuzzTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / 'bin').mkdir()
        for name in ('onnx_fuzz', 'http_fuzz'):
            (self.root / 'bin' / name).write_text(TARGET)
            (self.root / 'bin' / name).chmod(0o755)

    def run_fuzz(self, *flags, **environment):
        run = subprocess.run(
            [str(SOURCE / 'scripts/fuzz'), '--no_build', *flags],
            env={**os.environ, 'OPTFARM_BUILD_DIR': str(self.root), **environment},
            capture_output=True, text=True, check=False)
        self.said = run.stdout + run.stderr
        return run.returncode

    def test_each_target_gets_its_time_and_a_line(self):
        self.assertEqual(
            self.run_fuzz('--targets=onnx,http', '--minutes=0.03', '--jobs=2'),
            0, self.said)
        for name in ('onnx', 'http'):
            line = next(line for line in self.said.splitlines()
                        if line.startswith(name))
            self.assertEqual(line.split()[2:], ['500', '31', '41', '1', '0'])

    def test_inputs_stay_for_the_next_run(self):
        for count in (1, 2):
            self.assertEqual(
                self.run_fuzz('--targets=onnx', '--minutes=0.02'), 0, self.said)
            inputs = self.root / 'found/onnx/inputs'
            self.assertEqual(len(list(inputs.iterdir())), count)

    def test_a_failure_is_told_with_how_to_see_it_again(self):
        self.assertEqual(
            self.run_fuzz('--targets=onnx', '--minutes=0.04', FAILURES='2'), 1)
        self.assertIn('onnx: AddressSanitizer: heap-use-after-free a.cc:7',
                      self.said)
        for number in (0, 1):
            self.assertIn(
                f'{self.root}/bin/onnx_fuzz -timeout=10 -rss_limit_mb=2048 '
                f'{self.root}/found/onnx/failures/crash-{number}\n', self.said)
        self.assertIn('tests/fuzz/corpus/onnx/', self.said)

    def test_a_target_that_always_fails_is_left_alone(self):
        self.assertEqual(
            self.run_fuzz('--targets=onnx', '--minutes=10', FAILURES='1000'), 1)
        self.assertEqual(self.said.count('  again:'), 5)

    def test_the_same_failure_is_told_once(self):
        self.assertEqual(self.run_fuzz('--targets=onnx', '--minutes=10',
                                       FAILURES='1000', AGAIN='1'), 1)
        self.assertEqual(self.said.count('  again:'), 1)
        self.assertNotIn('ended with', self.said)

    def test_a_target_that_does_not_run_is_no_success(self):
        self.assertEqual(
            self.run_fuzz('--targets=onnx', '--minutes=10', BROKEN='1'), 1)
        self.assertIn('onnx: ended with 1', self.said)
        self.assertIn('found/onnx/log', self.said)

    def test_wrong_flags_are_refused_by_name(self):
        for flag, why in (('--targets=none', 'there is no none; there are '),
                          ('--minutes=0', '0 is no time'),
                          ('--jobs=0', '--jobs: 0'),
                          ('--often', '--often'),
                          ('--targets=tflite', 'no ' + str(self.root)),
                          (f'--found={SOURCE}/tests/fuzz', 'part of the tree')):
            self.assertEqual(self.run_fuzz(flag), 2, flag)
            self.assertIn(why, self.said)

    def test_every_target_has_seeds(self):
        for source in (SOURCE / 'tests/fuzz').glob('*_fuzz.cc'):
            name = source.name.removesuffix('_fuzz.cc')
            self.assertTrue(list((SOURCE / 'tests/fuzz/corpus' / name).iterdir()))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
