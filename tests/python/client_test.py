#!/usr/bin/env python3
"""The Python package and the example pipeline against a real server."""

import json
import pathlib
import subprocess
import sys
import unittest
from xml.etree import ElementTree

import farm as testing

import optfarm

DIGITS = testing.SOURCE / 'examples/digits'
GATE = testing.SOURCE / 'examples/training_pipeline/gate.py'


class ClientTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.farm = testing.Farm()
        cls.client = optfarm.Client(cls.farm.url,
                                    token_file=cls.farm.token_file)
        cls.job = cls.client.submit(
            DIGITS / 'digits.pb', 'int8', calibration=DIGITS / 'images',
            input_mean=127.5, input_std=127.5, name='digits',
            request_id='first')

    @classmethod
    def tearDownClass(cls):
        cls.farm.close()

    def test_a_job_is_followed_to_its_report(self):
        kinds = {kind for kind, _ in self.client.events(self.job)}
        self.assertLessEqual({'job_state', 'task_state'}, kinds)
        job = self.client.wait(self.job, testing.PATIENCE)
        report = optfarm.report(job)
        self.assertTrue(report.passed)
        self.assertLess(report.bytes_after, report.bytes_before / 2)
        self.assertGreater(report.top1_agreement, 0.9)
        self.assertTrue(all(gate.passed for gate in report.gates))
        # From a job that has ended, all events again, and an end.
        self.assertTrue(list(self.client.events(job)))
        self.assertEqual(
            list(self.client.events(job, int(job['last_event_sequence']))), [])
        list(self.client.logs(job))

    def optctl(self, *words):
        return subprocess.run(
            [str(testing.BIN / 'optctl'), *words, f'--server={self.farm.grpc}',
             f'--token_file={self.farm.token_file}'],
            capture_output=True, text=True, check=True).stdout

    def test_python_optctl_and_junit_give_the_servers_verdict(self):
        job = self.client.wait(self.job, testing.PATIENCE)
        served = job['verdicts']
        report = optfarm.report(job)
        self.assertEqual([one.answer for one in report.verdicts],
                         ['BASELINE', 'UNCLEAR'])
        verdict = report.verdict('int8')
        self.assertEqual(verdict.text, served[1]['text'])
        self.assertIn('speed not measured', verdict.text)
        self.assertEqual(verdict.agreement, report.top1_agreement)
        self.assertLess(verdict.size_ratio, 0.5)
        self.assertIsNone(verdict.speedup)
        with self.assertRaises(KeyError):
            report.verdict('int8', 'pi4')
        self.assertIn(verdict.text + '\n',
                      self.optctl('get', self.job['job_id']))
        junit = self.farm.folder / 'junit.xml'
        rows = json.loads(self.optctl(
            'submit', str(DIGITS / 'digits.pb'), '--recipe=int8',
            f"--calibration={DIGITS / 'images'}", '--input_mean=127.5',
            '--input_std=127.5', '--device=none', '--wait', '-o', 'json',
            f'--junit={junit}'))['rows']
        self.assertEqual([row['verdict_text'] for row in rows],
                         [one['text'] for one in served])
        self.assertEqual([row['verdict'].upper() for row in rows],
                         [one['answer'] for one in served])
        skipped = ElementTree.parse(junit).find('.//testcase/skipped')
        self.assertEqual(skipped.get('message'), verdict.text)

    def test_files_come_back_as_they_were_made(self):
        self.client.wait(self.job, testing.PATIENCE)
        path = self.farm.folder / 'optimized.pb'
        self.client.download_artifact(self.job, 'optimized.pb', path)
        self.assertGreater(path.stat().st_size, 1000)
        with self.assertRaises(optfarm.NotFound):
            self.client.download_artifact(self.job, 'other.pb', path)

    def test_large_files_go_up_in_parts_and_only_once(self):
        path = self.farm.folder / 'large.bin'
        path.write_bytes(bytes(range(256)) * (80 << 10))
        seen = []
        sha, = self.client.upload([path], lambda done, _: seen.append(done))
        self.assertEqual(seen[-1], path.stat().st_size)
        self.assertGreater(len(seen), 1)
        again = []
        self.client.upload([path], lambda done, _: again.append(done))
        self.assertEqual(again, [])
        back = self.farm.folder / 'back.bin'
        self.client.download(sha, back)
        self.assertEqual(back.read_bytes(), path.read_bytes())
        empty = self.farm.folder / 'empty'
        empty.write_bytes(b'')
        self.client.upload([empty])

    def test_a_job_is_part_of_the_callers_trace(self):
        parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
        job = self.client.submit(DIGITS / 'digits.pb', 'fp32', devices='none',
                                 traceparent=parent)
        self.assertEqual(job['spec']['tags'], ['traceparent=' + parent])

    def test_one_request_id_is_one_job(self):
        again = self.client.submit(
            DIGITS / 'digits.pb', 'int8', calibration=DIGITS / 'images',
            input_mean=127.5, input_std=127.5, name='digits',
            request_id='first')
        self.assertEqual(again['job_id'], self.job['job_id'])
        with self.assertRaises(optfarm.Conflict):
            self.client.submit(DIGITS / 'digits.pb', 'fp32',
                               request_id='first')

    def test_data_are_described_source_by_source(self):
        array = self.farm.folder / 'pixels.npy'
        header = ("{'descr': '|u1', 'fortran_order': False, "
                  "'shape': (2, 32, 32, 3), }").ljust(117) + '\n'
        array.write_bytes(b'\x93NUMPY\x01\0\x76\0' + header.encode() +
                          bytes(range(256)) * 24)
        job = self.client.submit(
            DIGITS / 'digits.pb', 'fp32',
            calibration=[optfarm.input_file(array, std=255.0)],
            labels=self._labels(), labels_offset=-1)
        found, labels = job['spec']['calibration']['sources']
        self.assertEqual(found['role'], 'INPUT')
        self.assertEqual(found['std'], 255.0)
        # Not given, and so not there: no zero stands for it.
        self.assertNotIn('mean', found)
        self.assertEqual(labels['files'][0]['path'], 'two.txt')
        report = optfarm.report(self.client.wait(job, testing.PATIENCE))
        self.assertIn('(value - 0) / 255', ' '.join(
            self.client.job(job)['report']['fed']))
        self.assertTrue(report.passed)

    def test_requests_of_former_releases_are_accepted(self):
        images = sorted((DIGITS / 'images/3').iterdir())[:4]
        shas = self.client.upload([DIGITS / 'digits.pb', *images])
        def digest(sha, path):
            return {'sha256': sha, 'size_bytes': str(path.stat().st_size)}
        job = self.client._http.call('POST', '/v1/jobs', {'spec': {
            'recipe_name': 'fp32',
            'model': {'name': 'digits.pb',
                      'digest': digest(shas[0], DIGITS / 'digits.pb')},
            'calibration': {
                'files': [{'path': f'3/{path.name}', 'digest': digest(*pair)}
                          for path, pair in zip(images,
                                                zip(shas[1:], images))],
                'input_mean': 127.5, 'input_std': 0}}})['job']
        source, = job['spec']['calibration']['sources']
        self.assertEqual((source['role'], source['mean'], source['std']),
                         ('SAMPLES', 127.5, 1))
        self.assertNotIn('files', {
            key for key, value in job['spec']['calibration'].items() if value})
        self.client.wait(job, testing.PATIENCE)

    def _labels(self):
        path = self.farm.folder / 'two.txt'
        path.write_text('1\n2\n')
        return path

    def test_lists_come_whole(self):
        ids = {job['job_id'] for job in self.client.jobs(name='digits')}
        self.assertIn(self.job['job_id'], ids)
        self.assertEqual(self.client.devices(), [])
        self.assertEqual(list(self.client.results(device='none')), [])

    def test_errors_say_what_was_wrong(self):
        with self.assertRaises(optfarm.NotFound):
            self.client.job('no-such-job')
        with self.assertRaises(optfarm.NotFound):
            self.client.submit(DIGITS / 'digits.pb', 'int9')
        with self.assertRaises(optfarm.InvalidArgument):
            list(self.client.jobs(colour='red'))
        with self.assertRaises(optfarm.Unauthenticated):
            optfarm.Client(self.farm.url, token='guess').devices()
        with self.assertRaises(ValueError):
            optfarm.Client('ftp://x')
        empty = self.farm.folder / 'no_samples'
        empty.mkdir()
        for folder, says in ((self.farm.folder / 'nothing', 'no folder'),
                             (empty, r"has no file named like one of \.jpg")):
            with self.assertRaisesRegex(ValueError, says):
                self.client.submit(DIGITS / 'digits.pb', 'int8',
                                   calibration=folder)
        with self.assertRaisesRegex(optfarm.Unavailable,
                                    r'127\.0\.0\.1:9: .* with --http\?'):
            optfarm.Client('http://127.0.0.1:9').devices()

    def test_all_kinds_of_samples_are_sent(self):
        folder = self.farm.folder / 'samples'
        (folder / 'b').mkdir(parents=True)
        names = ['a.JPG', 'b/c.png', 'd.wav', 'e.tfrecord', 'f.tfrecords',
                 'g.record']
        for name in [*names, 'notes.txt', '.hidden.png']:
            (folder / name).write_text(name)
        job = self.client.submit(DIGITS / 'digits.pb', 'fp32',
                                 calibration=folder)
        self.client.cancel(job)
        source, = job['spec']['calibration']['sources']
        self.assertEqual([file['path'] for file in source['files']], names)

    def test_a_job_that_fails_raises_with_the_reason(self):
        bad = self.farm.folder / 'bad.pb'
        # A node without a name.
        bad.write_bytes(b'\x0a\x02\x12\x00')
        job = self.client.submit(bad, 'fp32')
        with self.assertRaises(optfarm.JobFailed) as caught:
            self.client.wait(job, testing.PATIENCE)
        self.assertEqual(caught.exception.job['state'], 'FAILED')
        self.assertTrue(str(caught.exception))

    def gate(self, *flags):
        return subprocess.run(
            [sys.executable, str(GATE), str(DIGITS / 'digits.pb'),
             f"--calibration={DIGITS / 'images'}", '--input_mean=127.5',
             '--input_std=127.5', *flags],
            env=self.farm.environment(), capture_output=True, text=True,
            check=False)

    def test_the_example_pipeline_passes_and_fails_builds(self):
        good = self.gate()
        self.assertEqual(good.returncode, 0, good.stderr)
        self.assertIn('agreement', good.stdout)
        bad = self.gate('--max_size_ratio=0.01')
        self.assertEqual(bad.returncode, 1, bad.stderr)
        self.assertIn('NOT GOOD ENOUGH', bad.stderr)
        lost = self.gate('--url=http://127.0.0.1:1', '--timeout=1')
        self.assertEqual(lost.returncode, 2, lost.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
