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

    def test_a_file_that_is_no_model_fails_with_the_reason(self):
        cut = self.farm.folder / 'cut.tflite'
        whole = (self.farm.folder / 'digits.tflite').read_bytes()
        cut.write_bytes(whole[:len(whole) // 3])
        job = self.client.submit(cut, 'fp32', devices='none')
        with self.assertRaisesRegex(optfarm.JobFailed, 'cut.tflite'):
            self.client.wait(job, testing.PATIENCE)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
