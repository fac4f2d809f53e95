#!/usr/bin/env python3
"""Jobs that are measured: a server, a worker and two agents on loopback, from
the Python package and its notebooks."""

import json
import re
import subprocess
import sys
import time
import unittest

import farm as testing

import optfarm

DIGITS = testing.SOURCE / 'examples/digits'
NOTEBOOKS = sorted((testing.SOURCE / 'examples/notebooks').glob('*.ipynb'))
# As short as it gets: what is measured does not matter here.
QUICK = {'threads': [1], 'min_runs': 3, 'min_time': '1ms', 'max_time': '10s',
         'cool_down': '1ms', 'warmup_runs': 1}

# Each of the API's operations, and what offers it.
OPERATIONS = {
    'DeviceService_ListDevices': 'devices',
    'DeviceService_GetDevice': 'device',
    'DeviceService_ChangeDevice': 'change_device',
    'DeviceService_DeleteDevice': 'delete_device',
    'FarmService_ListVerdicts': 'verdicts',
    'FarmService_WatchJobs': 'watch_jobs',
    'FarmService_ListDeviceHistory': 'device_history',
    'FarmService_ListProjects': 'projects',
    'FarmService_GetStoreUsage': 'store',
    'FarmService_ListParticipants': 'participants',
    'JobService_SubmitJob': 'submit',
    'JobService_GetJob': 'job',
    'JobService_ListJobs': 'jobs',
    'JobService_CancelJob': 'cancel',
    'JobService_WatchJob': 'events',
    'JobService_WatchJob_2': 'logs',
    'ModelService_FindMissing': 'upload',
    'ModelService_QueryUpload': 'upload',
    'ModelService_Upload': 'upload',
    'ModelService_Upload_2': 'upload',
    'ModelService_Download': 'download',
    'ModelService_ListBlobs': 'blobs',
    'ModelService_RemoveBlobs': 'remove_blobs',
    'ResultService_QueryResults': 'results',
    'ResultService_QueryResults_2': 'results',
    'ResultService_CompareResults': 'compare',
    'ResultService_CompareResults_2': 'comparison',
    'ResultService_ListHistory': 'history',
    'ResultService_ListHistory_2': 'history',
    'ResultService_FindRegressions': 'regressions',
    'ResultService_FindRegressions_2': 'regressions',
    'StoreService_Backup': 'backup',
    'StoreService_QuerySql': 'sql',
    'StoreService_ListAudit': 'audit',
    'TuneService_CreateTune': 'tune',
    'TuneService_GetTune': 'find_tune',
    'TuneService_ListTunes': 'tunes',
    'TuneService_CancelTune': 'cancel_tune',
    'TokenService_WhoAmI': 'whoami',
    'TokenService_CreateToken': 'create_token',
    'TokenService_ListTokens': 'tokens',
    'TokenService_RevokeToken': 'revoke_token',
}


class MeasuredTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.farm = testing.Farm(agents=[('a1', 'lab'), ('a2', 'lab', 'slow')])
        cls.client = optfarm.Client(cls.farm.url,
                                    token_file=cls.farm.token_file,
                                    optctl=testing.BIN / 'optctl')

    @classmethod
    def tearDownClass(cls):
        cls.farm.close()

    def await_devices(self):
        """A device is offline for a moment after what it did was ended."""
        deadline = time.monotonic() + testing.PATIENCE
        while (time.monotonic() < deadline and
               any(device['state'] == 'OFFLINE'
                   for device in self.client.devices())):
            time.sleep(0.1)

    def devices_of(self, **options):
        self.await_devices()
        job = self.client.submit(DIGITS / 'digits.pb', 'fp32', **options)
        self.client.cancel(job)
        return (job['spec'].get('benchmark') or {}).get('devices', [])

    def test_a_job_is_measured_unless_it_says_otherwise(self):
        self.client.change_device('a2', 'disable', reason='out of the way')
        try:
            seen = []
            job = self.client.submit(DIGITS / 'digits.pb', 'fp32', **QUICK,
                                     tags='nightly,commit=1')
            self.assertEqual(job['spec']['benchmark']['devices'], ['a1'])
            report = optfarm.report(self.client.wait(
                job, testing.PATIENCE, progress=seen.append))
        finally:
            self.client.change_device('a2', 'enable')
        states = [one['state'] for one in self.client.device_history('a2')]
        self.assertEqual(states[1], 'DISABLED')
        self.assertIn('default',
                      [one['name'] for one in self.client.projects()])
        self.assertGreater(int(self.client.store()['blobs']), 0)
        self.assertIn('AGENT',
                      [one['kind'] for one in self.client.participants()])
        self.assertEqual({row.device for row in report.rows}, {'a1'})
        self.assertGreater(report.row('fp32').p90_ms, 0)
        self.assertIsNotNone(report.verdict('fp32', 'a1').speedup)
        self.assertIn('a1', report.to_markdown())
        # The command line writes the same words.
        printed = subprocess.run(
            [testing.BIN / 'optctl', f'--server={self.farm.grpc}',
             f'--token_file={self.farm.token_file}', 'report', job['job_id'],
             '--format=md'], capture_output=True, check=True,
            encoding='utf-8').stdout
        self.assertEqual(printed, report.to_markdown())
        self.assertIn('succeeded', seen[-1])
        # What it made counts for its project, until it is removed.
        made = [blob for blob in self.client.blobs()
                if {'job_id': job['job_id'], 'kind': 'ARTIFACT'}.items() <=
                blob['uses'][0].items()]
        smallest = made[-1]['digest']
        self.assertEqual(
            self.client.remove_blobs(smallest['sha256'])['given_back_bytes'],
            smallest['size_bytes'])
        self.assertNotIn(smallest, [blob['digest']
                                    for blob in self.client.blobs()])
        with self.assertRaisesRegex(optfarm.ApiError, 'its agent .* reported'):
            self.client.delete_device('a1')
        # What is kept of it.
        found = optfarm.to_dicts(self.client.results(tag='nightly'))
        self.assertEqual({one['measurement_variant'] for one in found},
                         {'float', 'fp32'})
        self.assertIsInstance(found[0]['measurement_file_size_bytes'], int)
        self.assertEqual(
            list(self.client.results(bounds={'median_us': (None, 1e-3)})), [])
        self.assertEqual(len(self.client.history(tag='nightly')['series']), 2)
        self.assertIn('judged', self.client.regressions(tag='nightly'))
        rows = self.client.compare(job, job)
        self.assertEqual({row['speedup'] for row in rows}, {1})
        self.assertEqual(self.client.comparison(job, job)['rows'], rows)
        with self.assertRaisesRegex(TypeError, "no 'colour' to filter by"):
            list(self.client.results(colour='red'))

    def test_devices_in_every_form(self):
        self.assertEqual(self.devices_of(devices='none'), [])
        self.assertEqual(self.devices_of(devices=()), [])
        self.assertEqual(self.devices_of(devices='a2'), ['a2'])
        self.assertEqual(self.devices_of(devices=['a2', 'a1']), ['a2', 'a1'])
        self.assertEqual(sorted(self.devices_of(devices='tag:lab')),
                         ['a1', 'a2'])
        self.assertEqual(self.devices_of(devices='any:slow'), ['any:slow'])
        self.assertEqual(len(self.devices_of(devices='any')), 1)
        with self.assertRaisesRegex(optfarm.NotFound, "the tag 'none-such'"):
            self.devices_of(devices='tag:none-such')
        with self.assertRaises(optfarm.NotFound):
            self.devices_of(devices='a3')
        with self.assertRaisesRegex(ValueError, "'any' beside others"):
            self.devices_of(devices=['any', 'a1'])

    def test_a_tune_finds_what_to_ship_on_each_device(self):
        images = optfarm.samples(DIGITS / 'images', mean=127.5, std=127.5)
        options = {'calibration': images, 'min_top1': -5, 'max_measured': 6,
                   'tags': ['nightly-tune']}
        with self.assertRaisesRegex(ValueError, 'give one of min_agreement'):
            self.client.tune(DIGITS / 'digits.pb', 'a1', min_snr=20, **options)
        with self.assertRaisesRegex(optfarm.NotFound, 'a3'):
            self.client.tune(DIGITS / 'digits.pb', 'a3', **options)
        with self.assertRaisesRegex(optfarm.InvalidArgument, 'max_measured'):
            self.client.tune(DIGITS / 'digits.pb', 'a1',
                             **{**options, 'max_measured': 5})
        tune = self.client.tune(DIGITS / 'digits.pb', 'tag:lab',
                                request_id='the-tune', **options)
        again = self.client.tune(DIGITS / 'digits.pb', 'tag:lab',
                                 request_id='the-tune', **options)
        self.assertEqual(tune['tune_id'], again['tune_id'])
        found = self.client.wait_tune(tune, testing.PATIENCE)
        self.assertEqual(found['spec']['job']['tags'], ['nightly-tune'])
        devices = optfarm.tuned(found)
        self.assertEqual(sorted(one.device for one in devices), ['a1', 'a2'])
        for device in devices:
            self.assertGreater(device.recommended.speedup, 0)
            self.assertIsNotNone(device.recommended.held_out_quality)
            self.assertGreaterEqual(len(device.variants), 4)
        job = self.client.job(devices[0].recommended.job_id)
        self.assertEqual(job['spec']['name'], found['job_name'])
        listed = list(self.client.tunes())
        self.assertEqual(listed[0]['tune_id'], tune['tune_id'])
        self.assertEqual(listed[0]['report']['devices'][0]['recommended'],
                         devices[0].recommended.name)
        # It has ended: nothing changes.
        self.assertEqual(self.client.cancel_tune(tune)['state'],
                         'TUNE_SUCCEEDED')

    def test_a_cancelled_tune_ends_with_its_jobs(self):
        tune = self.client.tune(
            DIGITS / 'digits.pb', 'a1', min_snr=20, fresh=True,
            calibration=optfarm.samples(DIGITS / 'images', mean=127.5,
                                        std=127.5))
        self.assertEqual(tune['state'], 'TUNE_RUNNING')
        ended = self.client.cancel_tune(tune, reason='a mistake')
        self.assertEqual(ended['state'], 'TUNE_CANCELLED')
        with self.assertRaisesRegex(optfarm.TuneFailed, 'a mistake'):
            self.client.wait_tune(tune, testing.PATIENCE)
        states = {job['state'] for job in
                  self.client.jobs(name=tune['job_name'])}
        self.assertLessEqual(states, {'CANCELLED', 'SUCCEEDED'})

    def test_every_option_reaches_the_server(self):
        job = self.client.submit(
            DIGITS / 'digits.pb',
            testing.SOURCE / 'examples/recipes/careful_int8.yaml',
            calibration=DIGITS / 'images', devices='a1', threads=[2],
            min_runs=4, min_time='2s', max_time=30, warmup_runs=2,
            precision=0.05, cpus=[0], cool_down=5, name='all of it',
            tags=['x'], no_cache=True, max_attempts=2,
            inputs={'input': (1, 32, 32, 3)}, outputs='softmax',
            deadlines={'queue': '1h', 'run': '10m', 'job': 7200})
        self.client.cancel(job)
        spec = job['spec']
        self.assertEqual(spec['recipe']['name'], 'careful_int8')
        self.assertEqual(spec['inputs'][0]['shape'], ['1', '32', '32', '3'])
        self.assertEqual(spec['outputs'], ['softmax'])
        bench = spec['benchmark']
        self.assertEqual(
            {key: bench[key] for key in (
                'threads', 'min_runs', 'min_time', 'max_time', 'warmup_runs',
                'precision', 'cpus', 'cool_down')},
            {'threads': [2], 'min_runs': 4, 'min_time': '2s',
             'max_time': '30s', 'warmup_runs': 2, 'precision': 0.05,
             'cpus': [0], 'cool_down': '5s'})
        self.assertEqual(spec['deadlines'],
                         {'queue': '3600s', 'run': '600s', 'job': '7200s'})
        self.assertEqual((spec['name'], spec['tags'], spec['no_cache'],
                          spec['max_attempts']),
                         ('all of it', ['x'], True, 2))

    def test_a_result_is_had_as_onnx_and_a_recipe_is_added_to(self):
        job = self.client.wait(self.client.submit(
            DIGITS / 'digits.pb', 'fp32', devices='none',
            histograms='softmax'), testing.PATIENCE)
        self.assertEqual(
            job['spec']['recipe']['verification']['histograms'], ['softmax'])
        made = self.farm.folder / 'made.onnx'
        self.client.download_model(job, made)
        self.assertGreater(made.stat().st_size, 1000)
        with self.assertRaisesRegex(ValueError, 'does not say which format'):
            self.client.download_model(job, self.farm.folder / 'made.pt')
        # As it came from there, it can be optimized again.
        again = self.client.submit(made, 'fp32', devices='none')
        self.client.wait(again, testing.PATIENCE)
        with self.assertRaisesRegex(ValueError, "give outputs='NODE'"):
            self.client.submit(DIGITS, 'fp32')

    def test_the_package_offers_all_of_the_api(self):
        api = self.client._http.call('GET', '/openapi.json')
        offered = {operation['operationId']
                   for verbs in api['paths'].values()
                   for operation in verbs.values()}
        self.assertEqual(offered, set(OPERATIONS))
        for name in OPERATIONS.values():
            self.assertTrue(callable(getattr(optfarm.Client, name)), name)

    def test_an_operators_calls(self):
        self.assertIn('ADMIN', self.client.whoami()['scopes'])
        self.assertTrue(self.client.ready())
        self.assertFalse(optfarm.Client('http://127.0.0.1:9').ready())
        made = self.client.create_token('ci', ['submit'], lifetime='1h')
        guest = optfarm.Client(self.farm.url, made['secret'])
        with self.assertLogs('optfarm', 'WARNING') as logged:
            job = guest.submit(DIGITS / 'digits.pb', 'fp32')
        self.assertIn('may not see devices', logged.output[0])
        self.assertNotIn('benchmark', {
            key for key, value in job['spec'].items() if value})
        self.client.cancel(job)
        self.assertIn('ci', [one['name'] for one in self.client.tokens()])
        self.client.revoke_token(made['token']['token_id'])
        with self.assertRaises(optfarm.Unauthenticated):
            guest.devices()
        self.assertEqual(self.client.device('a1')['info']['tags'], ['lab'])
        reserved = self.client.change_device('a2', 'reserve', duration='1m',
                                             tag='mine')
        self.assertEqual(reserved['reserved_for_tag'], 'mine')
        self.client.change_device('a2', 'enable')
        self.assertEqual(self.client.sql('SELECT 1 AS one, \'a\' AS two'),
                         [{'one': 1, 'two': 'a'}])
        self.assertGreater(int(self.client.backup('copy')['size_bytes']), 0)
        self.assertIn('CreateToken', ' '.join(
            one['method'] for one in self.client.audit()))

    def run_cells(self, cells, folder):
        environment = {
            **self.farm.environment(), 'PYTHONDONTWRITEBYTECODE': '1',
            'PYTHONPATH': str(testing.SOURCE / 'python'),
            'OPTFARM_OPTCTL': str(testing.BIN / 'optctl'),
            'TMPDIR': str(self.farm.folder)}
        script = ('import json, sys\n'
                  'space = {}\n'
                  'for i, cell in enumerate(json.load(sys.stdin)):\n'
                  '    exec(compile(cell, f"cell {i}", "exec"), space)\n')
        run = subprocess.run([sys.executable, '-c', script],
                             input=json.dumps(cells), cwd=folder,
                             env=environment, capture_output=True,
                             text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertTrue(run.stdout.strip())
        return environment

    def test_the_code_of_the_page_runs_as_it_stands(self):
        page = (testing.SOURCE / 'docs/python.md').read_text()
        blocks = re.findall(r'^```python\n(.*?)^```$', page,
                            re.MULTILINE | re.DOTALL)
        self.assertGreater(len(blocks), 5)
        folder = self.farm.folder / 'page'
        folder.mkdir()
        (folder / 'examples').symlink_to(testing.SOURCE / 'examples')
        self.run_cells(blocks, folder)

    def test_the_notebooks_run(self):
        self.assertEqual(len(NOTEBOOKS), 2)
        for path in NOTEBOOKS:
            notebook = json.loads(path.read_text())
            cells = [''.join(cell['source']) for cell in notebook['cells']
                     if cell['cell_type'] == 'code']
            for cell in notebook['cells']:
                self.assertFalse(cell.get('outputs'), 'clear all outputs')
            environment = self.run_cells(cells, path.parent)
            self.with_jupyter(path, environment)

    def with_jupyter(self, path, environment):
        """The same where Jupyter is installed."""
        has = subprocess.run([sys.executable, '-c', 'import nbconvert, '
                              'ipykernel'], capture_output=True, check=False)
        if has.returncode:
            return
        run = subprocess.run(
            [sys.executable, '-m', 'nbconvert', '--to', 'notebook',
             '--execute', '--stdout', str(path)], env=environment,
            capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
