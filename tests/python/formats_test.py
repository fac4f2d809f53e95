#!/usr/bin/env python3
"""ONNX and TensorFlow Lite models over REST: submitted, measured by an agent
that reads graphs alone, and had back in every format."""

import random
import struct
import subprocess
import sys
import unittest

import farm as testing

import optfarm

DIGITS = testing.SOURCE / 'examples/digits'
OPTCTL = str(testing.BIN / 'optctl')
QUICK = {'threads': [1], 'min_runs': 3, 'min_time': '1ms', 'max_time': '20s',
         'cool_down': '1ms', 'warmup_runs': 1}
SCALE = {'calibration': DIGITS / 'images', 'input_mean': 127.5,
         'input_std': 127.5}


def write_array(path, shape):
    """An .npy file of values in 0..1."""
    count = 1
    for size in shape:
        count *= size
    values = random.Random(7)
    data = struct.pack(f'<{count}f', *(values.random() for _ in range(count)))
    header = (f"{{'descr': '<f4', 'fortran_order': False, 'shape': "
              f"{tuple(shape)}, }}")
    header = header.ljust(117) + '\n'
    path.write_bytes(b'\x93NUMPY\x01\0' + struct.pack('<H', len(header)) +
                     header.encode() + data)
    return path


class FormatsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.farm = testing.Farm(agents=[('a1',)])
        cls.client = optfarm.Client(cls.farm.url,
                                    token_file=cls.farm.token_file,
                                    optctl=OPTCTL)
        for end in ('onnx', 'tflite'):
            subprocess.run(
                [OPTCTL, 'graph', 'convert', f'--in_graph={DIGITS}/digits.pb',
                 f'--out_graph={cls.farm.folder}/digits.{end}'],
                check=True, capture_output=True)

    @classmethod
    def tearDownClass(cls):
        cls.farm.close()

    def answers(self, path, name):
        """What a model file answers, by optctl."""
        out = self.farm.folder / f'answers-{name}'
        array = write_array(self.farm.folder / 'probe.npy', (1, 32, 32, 3))
        subprocess.run([OPTCTL, 'graph', 'run', f'--in_graph={path}',
                        f'--input=input={array}', '--output=softmax',
                        f'--out_dir={out}'],
                       check=True, capture_output=True)
        file, = out.glob('*.npy')
        data = file.read_bytes()
        start = 10 + struct.unpack('<H', data[8:10])[0]
        return struct.unpack(f'<{(len(data) - start) // 4}f', data[start:])

    def test_digits_in_each_format_measured_and_had_back_in_each(self):
        for end in ('onnx', 'tflite'):
            with self.subTest(model=end):
                self.one(end, 'int8')

    def one(self, end, recipe):
        model = self.farm.folder / f'digits.{end}'
        job = self.client.wait(
            self.client.submit(model, recipe, **SCALE, **QUICK),
            testing.PATIENCE)
        report = optfarm.report(job)
        self.assertGreater(report.top1_after, 90)
        # The original is measured as a graph, and has its own file's size.
        self.assertEqual({row.variant for row in report.rows},
                         {'float', recipe})
        self.assertEqual(report.row('float').file_bytes,
                         model.stat().st_size)
        self.assertTrue(all(
            (one.get('numeric_check') or {}).get('passed', True)
            for one in job['measurements']), job['measurements'])
        made = {}
        for wanted in ('pb', 'onnx', 'tflite'):
            path = self.farm.folder / f'{end}-{recipe}.{wanted}'
            self.client.download_model(job, path)
            made[wanted] = self.answers(path, path.name)
            self.assertEqual(len(made[wanted]), 10)
        for wanted in ('onnx', 'tflite'):
            self.assertLess(
                max(abs(a - b) for a, b in zip(made['pb'], made[wanted])),
                0.15, wanted)

    def test_optctl_download_makes_other_formats(self):
        job = self.client.wait(self.client.submit(
            DIGITS / 'digits.pb', 'fp32', devices='none'), testing.PATIENCE)
        words = [OPTCTL, 'download', job['job_id'],
                 f'--out_dir={self.farm.folder}/down',
                 f'--server={self.farm.grpc}',
                 f'--token_file={self.farm.token_file}']
        for end in ('onnx', 'tflite', 'pb'):
            done = subprocess.run([*words, f'--out_format={end}'], text=True,
                                  capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            made = self.farm.folder / f'down/optimized.{end}'
            self.assertEqual(len(self.answers(made, f'down.{end}')), 10)
        done = subprocess.run([*words, '--out_format=pt'], text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("'pt' is not pb, onnx or tflite", done.stderr)

    def optctl(self, *words):
        return subprocess.run(
            [OPTCTL, *words, f'--server={self.farm.grpc}',
             f'--token_file={self.farm.token_file}'],
            text=True, capture_output=True, check=False)

    def test_the_farm_makes_the_formats_that_a_job_asks_for(self):
        job = self.client.wait(self.client.submit(
            DIGITS / 'digits.pb', 'int8', **SCALE, devices='none',
            out_formats=['tflite', 'onnx']), testing.PATIENCE)
        self.assertEqual(job['spec']['out_formats'], ['ONNX', 'TFLITE'])
        report = optfarm.report(job)
        self.assertEqual([one.artifact for one in report.exports],
                         ['optimized.onnx', 'optimized.tflite'])
        graph = self.farm.folder / 'asked.pb'
        self.client.download_model(job, graph)
        # Without optctl: the farm has done it.
        bare = optfarm.Client(self.farm.url, token_file=self.farm.token_file,
                              optctl='/nowhere/optctl')
        for one in report.exports:
            self.assertEqual(one.problems, ())
            self.assertLess(one.relative_difference, 0.2, one.summary)
            self.assertIn('read back', one.summary)
            path = self.farm.folder / f'asked.{one.format}'
            bare.download_model(job, path)
            self.assertEqual(path.stat().st_size, one.size_bytes)
            self.assertLess(max(
                abs(a - b) for a, b in
                zip(self.answers(graph, 'asked-pb'),
                    self.answers(path, f'asked-{one.format}'))), 0.15)
        self.assertIn('optimized.tflite: tflite,', report.to_markdown())
        with self.assertRaises(optfarm.ToolMissing):
            bare.download_model(
                self.client.wait(self.client.submit(
                    DIGITS / 'digits.pb', 'fp32', devices='none'),
                    testing.PATIENCE), self.farm.folder / 'other.tflite')

    def unwritable(self):
        """A model that works and that no other format has an op for."""
        path = self.farm.folder / 'gamma.pbtxt'
        kind = 'attr { key: "T" value { type: DT_FLOAT } }'
        path.write_text(
            'node { name: "x" op: "Placeholder" '
            'attr { key: "dtype" value { type: DT_FLOAT } } '
            'attr { key: "shape" value { shape { dim { size: 1 } '
            'dim { size: 4 } } } } } '
            f'node {{ name: "g" op: "Lgamma" input: "x" {kind} }} '
            f'node {{ name: "y" op: "Digamma" input: "g" {kind} }}',
            encoding='utf-8')
        return path

    def test_a_format_that_cannot_hold_the_result_is_told_with_its_reasons(
            self):
        model = self.unwritable()
        job = self.client.wait(self.client.submit(
            model, 'fp32', devices='none', out_formats='tflite'),
            testing.PATIENCE, check=False)
        self.assertEqual(job['state'], 'FAILED')
        self.assertEqual(job['failure']['code'], 'GATE_FAILED')
        report = optfarm.report(job)
        gate, = (one for one in report.gates if not one.passed)
        self.assertEqual(gate.name, 'out_formats')
        for op in ('Lgamma', 'Digamma'):
            self.assertIn(op, gate.message)
            self.assertIn(op, ' '.join(report.exports[0].problems))
        # The other files are there.
        self.client.download_model(job, self.farm.folder / 'gamma.pb')
        with self.assertRaisesRegex(optfarm.NotFound, 'Digamma'):
            self.client.download_model(job, self.farm.folder / 'gamma.tflite')
        # With the graph among the formats it is a warning.
        job = self.client.wait(self.client.submit(
            model, 'fp32', devices='none', out_formats='pb,tflite'),
            testing.PATIENCE)
        self.assertTrue(any('One format less' in text for text in
                            optfarm.report(job).warnings))
        with self.assertRaisesRegex(ValueError, "'pt'; give pb, onnx or"):
            self.client.submit(model, 'fp32', out_formats='pt')

    def test_optctl_submit_has_the_file_when_the_job_has_ended(self):
        for end in ('tflite', 'onnx'):
            path = self.farm.folder / f'submitted.{end}'
            done = self.optctl('submit', str(DIGITS / 'digits.pb'),
                               '--recipe=fp32', '--device=none', '--wait',
                               f'--out_graph={path}')
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            self.assertIn(f'submitted.{end}: {end}', done.stdout)
            self.assertEqual(len(self.answers(path, path.name)), 10)
        path = self.farm.folder / 'gamma-submitted.onnx'
        done = self.optctl('submit', str(self.unwritable()), '--recipe=fp32',
                           '--device=none', '--wait', f'--out_graph={path}')
        self.assertEqual(done.returncode, 6, done.stderr + done.stdout)
        self.assertIn('    Digamma: ', done.stdout)
        self.assertFalse(path.exists())

    def test_a_file_that_is_no_model_fails_with_the_reason(self):
        cut = self.farm.folder / 'cut.tflite'
        whole = (self.farm.folder / 'digits.tflite').read_bytes()
        cut.write_bytes(whole[:len(whole) // 3])
        job = self.client.submit(cut, 'fp32', devices='none')
        with self.assertRaisesRegex(optfarm.JobFailed, 'cut.tflite'):
            self.client.wait(job, testing.PATIENCE)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
