#!/usr/bin/env python3
"""The GitHub Action and the GitLab template: their scripts run as they stand,
against a real server and an API of comments on loopback."""

import http.server
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import unittest

import farm as testing

CI = testing.SOURCE / 'examples/ci'
DIGITS = testing.SOURCE / 'examples/digits'


def scripts_of(path):
    """The blocks of shell in a pipeline's file."""
    text = path.read_text()
    blocks = []
    for match in re.finditer(r'^( *)(?:run:|-) \|\n((?:\1  .*\n|\n)+)', text,
                             re.MULTILINE):
        blocks.append(textwrap.dedent(match[2]))
    return blocks


class Comments(http.server.BaseHTTPRequestHandler):
    """What GitHub and GitLab answer to the three calls."""

    def answer(self, code, body):
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header('Content-Length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        self.server.paths.append(self.path)
        self.answer(200, [{'id': 7, 'body': 'of somebody else'}] +
                    self.server.comments)

    def write(self):
        body = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
        self.server.paths.append(f'{self.command} {self.path}')
        self.server.comments[:] = [{'id': 42, 'body': body['body']}]
        self.answer(201, body)

    do_POST = do_PATCH = do_PUT = write

    def log_message(self, *_):
        pass


class CiExamplesTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.farm = testing.Farm()
        cls.api = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Comments)
        threading.Thread(target=cls.api.serve_forever, daemon=True).start()

    @classmethod
    def tearDownClass(cls):
        cls.api.shutdown()
        cls.api.server_close()
        cls.farm.close()

    def setUp(self):
        self.api.comments, self.api.paths = [], []
        self.address = f'http://127.0.0.1:{self.api.server_port}'
        self.folder = self.farm.folder / self.id().rsplit('.', 1)[1]
        self.folder.mkdir()

    def run_script(self, script, variables):
        environment = {**self.farm.environment(), **variables,
                       'PYTHONDONTWRITEBYTECODE': '1',
                       'PATH': f'{os.path.dirname(sys.executable)}:'
                               f"{os.environ['PATH']}"}
        return subprocess.run(['bash', '-e', '-c', script], cwd=self.folder,
                              env=environment, capture_output=True, text=True,
                              check=False)

    def job(self):
        return {'MODEL': str(DIGITS / 'digits.pb'), 'RECIPE': 'int8',
                'CALIBRATION': str(DIGITS / 'images'), 'LABELS': '',
                'INPUT_MEAN': '127.5', 'INPUT_STD': '127.5', 'DEVICE': 'none',
                'THREADS': '', 'TIMEOUT': '100', 'OUT_MODEL': 'out.pb'}

    def github(self, **more):
        work, comment = scripts_of(CI / 'github/action.yml')
        variables = {
            **self.job(), 'RUNNER_TEMP': str(self.folder),
            'GITHUB_OUTPUT': str(self.folder / 'output'),
            'GITHUB_STEP_SUMMARY': str(self.folder / 'summary'),
            'GITHUB_ACTION_PATH': str(CI / 'github'), 'GITHUB_SHA': 'abc',
            'GITHUB_REPOSITORY': 'team/nets', 'GITHUB_RUN_ID': self.id(),
            'GITHUB_RUN_ATTEMPT': '1', 'PULL_REQUEST': '5',
            'GITHUB_TOKEN': 't', 'GITHUB_API_URL': self.address, **more}
        done = self.run_script(work, variables)
        output = (self.folder / 'output').read_text().splitlines()[-1]
        variables['REPORT'] = output.partition('=')[2]
        posted = self.run_script(comment, variables)
        self.assertEqual(posted.returncode, 0, posted.stderr)
        return done

    def test_the_action_reports_and_replaces_its_comment(self):
        done = self.github()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater((self.folder / 'out.pb').stat().st_size, 1000)
        summary = (self.folder / 'summary').read_text()
        self.assertIn('| int8 |', summary)
        comment, = self.api.comments
        self.assertEqual(comment['body'], '<!-- optfarm -->\n' + summary)
        self.assertEqual(self.api.paths[-1],
                         'POST /repos/team/nets/issues/5/comments')
        self.github()
        self.assertEqual(self.api.paths[-1],
                         'PATCH /repos/team/nets/issues/comments/42')

    def test_the_action_fails_a_build_whose_gate_fails(self):
        recipe = self.folder / 'strict.json'
        recipe.write_text(json.dumps({
            'name': 'strict', 'transforms': [{'name': 'fold_constants'}],
            'bounds': {'max_size_ratio': 0.01}}))
        done = self.github(RECIPE=str(recipe), OUT_MODEL='')
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('❌', self.api.comments[0]['body'])
        self.assertIn('max\\_size\\_ratio', self.api.comments[0]['body'])

    def test_a_server_that_is_not_there_is_no_verdict(self):
        done = self.github(MODEL='none.pb')
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no model 'none.pb'", done.stderr)
        self.assertEqual(self.api.comments, [])

    def test_the_template_reports_on_the_merge_request(self):
        script, = scripts_of(CI / 'gitlab/optfarm.gitlab-ci.yml')
        variables = {
            **self.job(), 'OPTFARM_HOME': str(testing.SOURCE),
            'CI_COMMIT_SHA': 'abc', 'CI_PROJECT_ID': '3', 'CI_JOB_ID': '4',
            'CI_API_V4_URL': self.address, 'CI_MERGE_REQUEST_IID': '9',
            'GITLAB_TOKEN': 't'}
        for method, path in (('POST', 'notes'), ('PUT', 'notes/42')):
            done = self.run_script(script, variables)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.api.paths[-1],
                             f'{method} /projects/3/merge_requests/9/{path}')
        self.assertIn('| int8 |', done.stdout)
        variables.pop('GITLAB_TOKEN')
        done = self.run_script(script, variables)
        self.assertIn('GITLAB_TOKEN is not set', done.stderr)
        variables.pop('CI_MERGE_REQUEST_IID')
        done = self.run_script(script, variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('this is no pull request', done.stdout)

    def test_every_variable_of_the_action_is_set_or_the_runners(self):
        action = (CI / 'github/action.yml').read_text()
        inputs = set(re.findall(r'^  ([a-z-]+): \{description', action,
                                re.MULTILINE))
        self.assertEqual(inputs, set(re.findall(r'inputs\.([a-z-]+)', action)))
        # Nothing that others write stands in a script.
        for script in scripts_of(CI / 'github/action.yml'):
            self.assertNotIn('${{', script)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
