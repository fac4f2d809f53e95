#!/usr/bin/env python3
"""/openapi.json is what a validator that others wrote takes for an OpenAPI
document. The validator comes from npm; where node, npm or the registry is
missing, the test says so and is skipped.

usage: openapi_validator_test.py FOLDER_OF_THE_PROGRAMS
"""

import json
import shutil
import subprocess
import sys
import unittest
import urllib.request

import farm as testing

PACKAGES = ['@apidevtools/swagger-parser@10.1.1', 'openapi-types@12.1.3']
# Says what is wrong, and fails.
SCRIPT = '''
const parser = require('@apidevtools/swagger-parser');
parser.validate(process.argv[2]).then(
    (api) => console.log(api.openapi, Object.keys(api.paths).length),
    (error) => { console.error(error.message); process.exit(1); });
'''


class OpenApiValidatorTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if not (shutil.which('node') and shutil.which('npm')):
            raise unittest.SkipTest('node and npm are not installed')
        cls.farm = testing.Farm(worker=False)
        cls.folder = cls.farm.folder / 'validator'
        cls.folder.mkdir()
        install = subprocess.run(
            ['npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts',
             *PACKAGES],
            cwd=cls.folder, capture_output=True, text=True, check=False)
        if install.returncode != 0:
            cls.farm.close()
            raise unittest.SkipTest('npm has no validator to give: ' +
                                    install.stderr[-500:])
        (cls.folder / 'validate.js').write_text(SCRIPT)

    @classmethod
    def tearDownClass(cls):
        cls.farm.close()

    def validate(self, document):
        (self.folder / 'api.json').write_text(json.dumps(document))
        return subprocess.run(['node', 'validate.js', 'api.json'],
                              cwd=self.folder, capture_output=True, text=True,
                              check=False)

    def test_the_document_is_valid(self):
        with urllib.request.urlopen(self.farm.url + '/openapi.json') as answer:
            document = json.load(answer)
        run = self.validate(document)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.split(),
                         [document['openapi'], str(len(document['paths']))])
        # And the validator looks.
        del document['info']['version']
        self.assertNotEqual(self.validate(document).returncode, 0)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)
