#!/usr/bin/env python3
"""What scripts/test does for Arm, and when: run on a tree whose other scripts,
and CTest, only note how they were called. Bash takes SECONDS, the time that
the script has run, from the environment.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]

NOTE = r'''#!/bin/bash
echo "$(basename "$0") $*" >>"$CALLS"
[ "$(basename "$0")${1:+ $1}" != "$REFUSED" ]
'''

CTEST = r'''#!/bin/bash
echo "ctest agent=${OPTFARM_ARM_AGENT:-} none=${OPTFARM_NO_ARM:-}" >>"$CALLS"
while [ "$1" != --output-log ]; do shift; done
cat >"$2" <<'END'
 1/4 Test #11: base/base ..............   Passed    0.10 sec
 2/4 Test #12: arm/agent ..............   Passed    0.20 sec
 3/4 Test #13: integration/PhoneFarm ..***Failed    0.30 sec
 4/4 Test #14: integration/AgentFarm ..   Passed    0.40 sec
 5/5 Test #15: web/page ...............***Skipped   0.50 sec
[  FAILED  ] PhoneFarm.SeveralPhones
not ok 13 - a page
  error: |-
    Timeout exceeded.
    Call log:
  code: 'ERR_TEST_FAILURE'
END
echo "the web page is not tested: no browser" >build/release/web_not_tested
exit "${CTEST_CODE:-0}"
'''


class ScriptsTestTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / 'scripts').mkdir()
        (self.root / 'bin').mkdir()
        (self.root / 'build/release').mkdir(parents=True)
        shutil.copy(SOURCE / 'scripts/test', self.root / 'scripts/test')
        for name in ('install_deps', 'build', 'arm_sysroot', 'build_arm',
                     'test_arm'):
            self.write(f'scripts/{name}', NOTE)
        self.write('bin/ctest', CTEST)

    def write(self, name, text):
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)

    def run_test(self, *arguments, **environment):
        """Sets code, said and calls."""
        calls = self.root / 'calls'
        calls.write_text('')
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith('OPTFARM_') and name != 'SECONDS'}
        run = subprocess.run(
            [str(self.root / 'scripts/test'), *arguments],
            env={**kept, 'CALLS': str(calls), 'REFUSED': '',
                 'PATH': f"{self.root}/bin:{os.environ['PATH']}",
                 **environment},
            capture_output=True, text=True, check=False)
        self.code, self.said = run.returncode, run.stdout + run.stderr
        self.calls = calls.read_text().splitlines()

    def test_all_is_built_for_arm_after_the_rest(self):
        self.run_test()
        self.assertEqual(self.code, 0, self.said)
        self.assertEqual(self.calls, [
            'install_deps --tests', 'build release', 'install_deps --arm',
            'arm_sysroot arm64 build/sysroot-arm64',
            'build_arm arm64 optfarm-agent engine_runtime_test',
            f'ctest agent={self.root}/build/arm64/bin/optfarm-agent none='])
        self.assertIn('arm/agent ..............   Passed', self.said)
        self.assertIn('integration/PhoneFarm ..***Failed', self.said)
        self.assertNotIn('AgentFarm', self.said)

    def assert_nothing_for_arm(self, reason):
        self.assertNotIn('build_arm', ' '.join(self.calls))
        self.assertEqual(self.calls[-1], f'ctest agent= none={reason}')
        self.assertIn(f'test: no agent for Arm: {reason}\n', self.said)
        # By a stand-in for the agent, which is this machine's.
        self.assertNotIn('PhoneFarm', self.said)

    def test_a_machine_that_took_half_an_hour_leaves_arm_out(self):
        self.run_test(SECONDS='1830')
        self.assertEqual(self.code, 0, self.said)
        self.assertNotIn('install_deps --arm', self.calls)
        self.assert_nothing_for_arm('all before it took 30 minutes; '
                                    'OPTFARM_ARM=1 builds it')

    def test_half_an_hour_is_no_reason_where_arm_is_asked_for(self):
        self.run_test(SECONDS='1830', OPTFARM_ARM='1')
        self.assertIn('build_arm arm64 optfarm-agent engine_runtime_test',
                      self.calls)

    def test_less_than_half_an_hour_is_no_reason(self):
        self.run_test(SECONDS='1700')
        self.assertIn('build_arm arm64 optfarm-agent engine_runtime_test',
                      self.calls)

    def test_arm_is_left_out_on_demand(self):
        self.run_test(OPTFARM_ARM='0')
        self.assert_nothing_for_arm('OPTFARM_ARM is 0')

    def test_packages_that_are_not_to_be_had_leave_arm_out(self):
        self.run_test(REFUSED='arm_sysroot arm64')
        self.assertEqual(self.code, 0, self.said)
        self.assert_nothing_for_arm('scripts/arm_sysroot arm64 failed')
        self.run_test(REFUSED='install_deps --arm')
        self.assert_nothing_for_arm('scripts/install_deps --arm failed')

    def test_what_does_not_compile_for_arm_fails(self):
        self.run_test(REFUSED='build_arm arm64')
        self.assertNotEqual(self.code, 0)
        self.assertEqual(self.calls[-1].split()[0], 'build_arm')

    def test_some_tests_of_a_preset_take_nothing_for_arm(self):
        self.run_test('dev', '-R', 'engine/graph')
        self.assertEqual(self.calls, ['install_deps ', 'build dev',
                                      'ctest agent= none='])
        self.assertNotIn('Arm', self.said)

    def test_says_whether_the_web_page_was_tested(self):
        self.run_test()
        self.assertIn('web/page', self.said)
        self.assertIn('the web page is not tested: no browser', self.said)

    def test_the_exit_code_is_ctests(self):
        self.run_test(CTEST_CODE='8')
        self.assertEqual(self.code, 8)
        self.assertIn('arm/agent', self.said)

    def test_what_failed_is_said_again_at_the_end(self):
        self.run_test(CTEST_CODE='8')
        self.assertIn('test: of what failed:\n'
                      '  [  FAILED  ] PhoneFarm.SeveralPhones\n'
                      '  not ok 13 - a page\n'
                      '    error: |-\n'
                      '      Timeout exceeded.\n', self.said)
        self.run_test()
        self.assertNotIn('of what failed', self.said)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
