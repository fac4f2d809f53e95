#!/usr/bin/env python3
"""What scripts/bill_of_materials says of this build's own programs.

usage: bill_of_materials_test.py BUILD_FOLDER
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv.pop(1))


def bill(*arguments):
    return subprocess.run([SOURCE / 'scripts/bill_of_materials', *arguments],
                          capture_output=True, text=True, check=False)


class BillOfMaterialsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.text = bill(BUILD, 'optfarm-server')
        cls.parts = json.loads(cls.text.stdout or '{"components": []}')['components']

    def linkage(self, name):
        return [part['properties'][0]['value'] for part in self.parts
                if re.fullmatch(name, part['name'])]

    def test_lists_what_a_program_carries_and_loads_and_was_compiled_with(self):
        self.assertEqual(self.text.returncode, 0, self.text.stderr)
        grpc = self.linkage('libgrpc-dev|libgrpc29|libgrpc[0-9.]+')
        self.assertTrue(grpc, self.text.stdout)
        self.assertTrue(self.linkage('libprotobuf.*'))
        self.assertEqual(self.linkage('libsqlite3-0'), ['shared'])
        # Of Boost only headers are used.
        self.assertEqual(self.linkage('libboost[0-9.]+-dev'), ['headers'])

    def test_versions_are_those_that_are_installed(self):
        installed = subprocess.run(
            ['dpkg-query', '-W', '-f', '${Version}', 'libsqlite3-0'],
            capture_output=True, text=True, check=True).stdout
        versions = [part['version'] for part in self.parts
                    if part['name'] == 'libsqlite3-0']
        self.assertEqual(versions, [installed])

    def test_each_part_is_named_once_and_has_an_address(self):
        names = [part['purl'] for part in self.parts]
        self.assertEqual(names, sorted(set(names)))
        for part in self.parts:
            self.assertRegex(part['purl'], r'^pkg:(deb/debian|npm)/[^@ ]+@[^@ ]+$')

    def test_the_page_is_listed_where_it_is_built_in(self):
        cache = (BUILD / 'CMakeCache.txt').read_text()
        has_page = 'OPTFARM_WEB_BUILT:INTERNAL=ON' in cache
        self.assertEqual(self.linkage('preact'), ['bundled'] if has_page else [])
        # Only builds the page.
        self.assertEqual(self.linkage('esbuild'), [])

    def test_the_same_build_gives_the_same_text(self):
        self.assertEqual(bill(BUILD, 'optfarm-server').stdout, self.text.stdout)

    def test_what_was_not_built_is_refused(self):
        self.assertEqual(bill(BUILD, 'no-such-program').returncode, 1)
        nowhere = bill('/nowhere', 'optctl')
        self.assertEqual(nowhere.returncode, 1)
        self.assertIn('/nowhere is no build folder', nowhere.stderr)
        self.assertEqual(bill().returncode, 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
