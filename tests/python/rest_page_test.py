#!/usr/bin/env python3
"""docs/rest.md and /openapi.json say what is true: the page's commands are run
as they stand, and a client that knows nothing but the document submits a job
and reads it."""

import hashlib
import json
import os
import re
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

import farm as testing

PAGE = testing.SOURCE / 'docs/rest.md'
VERBS = {'get', 'put', 'post', 'delete', 'patch'}


class Document:
    """Calls made from an OpenAPI document alone."""

    def __init__(self, url, token):
        self.url = url
        self.token = token
        with urllib.request.urlopen(url + '/openapi.json') as answer:
            self.api = json.load(answer)
        self.operations = {
            operation['operationId']: (verb, path, operation)
            for path, verbs in self.api['paths'].items()
            for verb, operation in verbs.items()
        }

    def call(self, name, body=None, **parameters):
        verb, path, operation = self.operations[name]
        query, headers = {}, {'Authorization': f'Bearer {self.token}'}
        for parameter in operation['parameters']:
            key = parameter['name']
            if key not in parameters:
                assert not parameter['required'], key
                continue
            value = str(parameters.pop(key))
            if parameter['in'] == 'path':
                path = path.replace('{%s}' % key,
                                    urllib.parse.quote(value, safe=''))
            elif parameter['in'] == 'query':
                query[key] = value
            else:
                headers[key] = value
        assert not parameters, parameters
        data = None
        if 'requestBody' in operation:
            kind, = operation['requestBody']['content']
            headers['Content-Type'] = kind
            data = json.dumps(body).encode() if 'json' in kind else body
        url = self.url + path + ('?' + urllib.parse.urlencode(query)
                                 if query else '')
        request = urllib.request.Request(url, data, headers,
                                         method=verb.upper())
        with urllib.request.urlopen(request, timeout=testing.PATIENCE) as got:
            assert str(got.status) in operation['responses'], got.status
            return got.read()


class RestPageTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.farm = testing.Farm()
        cls.document = Document(cls.farm.url, testing.TOKEN)

    @classmethod
    def tearDownClass(cls):
        cls.farm.close()

    def test_the_pages_commands_run_as_they_stand(self):
        blocks = re.findall(r'^```sh\n(.*?)^```$', PAGE.read_text(),
                            re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 5)
        folder = self.farm.folder / 'page'
        folder.mkdir()
        os.symlink(testing.SOURCE / 'examples', folder / 'examples')
        script = 'set -euo pipefail\n' + '\n'.join(blocks)
        run = subprocess.run(['bash', '-x', '-c', script], cwd=folder,
                             env=self.farm.environment(), capture_output=True,
                             text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn('optimized.tflite: OK', run.stdout)
        self.assertIn('float BASELINE baseline\n', run.stdout)
        self.assertRegex(run.stdout, r'fp32 UNCLEAR unclear: .*speed not')
        self.assertIn('event: end', run.stdout)
        self.assertEqual((folder / 'head.bin').stat().st_size, 100)

    def test_the_document_is_sound(self):
        api = self.document.api
        self.assertEqual(api['openapi'], '3.0.3')
        components = api['components']
        names = []

        def walk(node):
            if isinstance(node, dict):
                if '$ref' in node:
                    prefix, _, name = node['$ref'].rpartition('/')
                    self.assertIn(prefix, ('#/components/schemas',
                                           '#/components/responses'))
                    self.assertIn(name, components[prefix.split('/')[-1]])
                for value in node.values():
                    walk(value)
            elif isinstance(node, list):
                for value in node:
                    walk(value)

        walk(api)
        for path, verbs in api['paths'].items():
            self.assertTrue(path.startswith('/v1/'), path)
            self.assertLessEqual(set(verbs), VERBS)
            for operation in verbs.values():
                names.append(operation['operationId'])
                declared = {one['name'] for one in operation['parameters']
                            if one['in'] == 'path'}
                self.assertEqual(declared,
                                 set(re.findall(r'{([^}]*)}', path)), path)
                places = [(one['in'], one['name'])
                          for one in operation['parameters']]
                self.assertEqual(len(places), len(set(places)), path)
                self.assertTrue(operation['responses'])
        self.assertEqual(len(names), len(set(names)))
        for name in ('JobService_SubmitJob', 'ModelService_Download',
                     'ResultService_QueryResults', 'TokenService_CreateToken'):
            self.assertIn(name, names)

    def test_the_document_marks_what_is_deprecated(self):
        schemas = self.document.api['components']['schemas']
        spec = schemas['JobSpec']['properties']
        self.assertTrue(spec['labels']['deprecated'])
        self.assertNotIn('deprecated', spec['calibration'])
        data = schemas['Dataset']['properties']
        self.assertTrue(data['files']['deprecated'])
        self.assertEqual(data['sources']['items'],
                         {'$ref': '#/components/schemas/DataSource'})

    def test_a_client_made_from_the_document_alone_submits_and_reads(self):
        model = (testing.SOURCE / 'examples/digits/digits.pb').read_bytes()
        sha = hashlib.sha256(model).hexdigest()
        call = self.document.call
        call('ModelService_Upload', model, **{'digest.sha256': sha})
        spec = {
            'model': {
                'name': 'digits.pb',
                'digest': {'sha256': sha, 'size_bytes': str(len(model))}
            },
            'recipe_name': 'fp32'
        }
        accepted = json.loads(call('JobService_SubmitJob', {'spec': spec}))
        job_id = accepted['job']['job_id']
        events = call('JobService_WatchJob', job_id=job_id)
        self.assertIn(b'event: end', events)
        job = json.loads(call('JobService_GetJob', job_id=job_id))
        self.assertEqual(job['state'], 'SUCCEEDED')
        artifact, = [one for one in job['artifacts']
                     if one['name'] == 'optimized.pb']
        made = call('ModelService_Download',
                    **{'digest.sha256': artifact['digest']['sha256']})
        self.assertEqual(hashlib.sha256(made).hexdigest(),
                         artifact['digest']['sha256'])
        with self.assertRaises(urllib.error.HTTPError) as caught:
            call('JobService_GetJob', job_id='none')
        self.assertEqual(caught.exception.code, 404)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
