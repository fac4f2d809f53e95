#!/usr/bin/env python3
"""The package itself: its types, its wheel, and all that needs no server."""

import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import farm as testing

import optfarm
from optfarm import data, local, markdown, progress, spec

PACKAGE = testing.SOURCE / 'python'
OPTCTL = testing.BIN / 'optctl'
CAREFUL = testing.SOURCE / 'examples/recipes/careful_int8.yaml'

PRINTED = {
    'job_id': 'j1', 'state': 'SUCCEEDED', 'failure': None,
    'rows': [
        {'variant': 'float', 'device': 'pi4', 'threads': 1,
         'file_size_bytes': 1000, 'median_us': 200.0, 'top1_percent': 98.0,
         'runs': 50, 'verdict': 'baseline', 'verdict_text': 'baseline'},
        {'variant': 'int8', 'device': 'pi4', 'threads': 1,
         'file_size_bytes': 250, 'median_us': 100.0, 'top1_percent': 97.5,
         'runs': 50, 'speedup': 2.0, 'verdict': 'yes',
         'verdict_text': 'yes: 0.25x size, 2.00x faster'}],
    'gates': [{'name': 'max_size_ratio', 'passed': True, 'value': 0.25,
               'bound': 0.5, 'message': 'fine'}],
    'report': {'size_before': {'file_bytes': '1000'},
               'float_accuracy': {'samples': '10', 'top1': 98.0},
               'optimized_accuracy': {'samples': '10', 'top1': 97.5},
               'size_after': {'file_bytes': '250'}, 'recipe_name': 'int8'}}


class TypesTest(unittest.TestCase):

    @unittest.skipUnless(shutil.which('mypy'), 'mypy is not installed')
    def test_the_package_and_its_example_are_strictly_typed(self):
        with tempfile.TemporaryDirectory() as cache:
            run = subprocess.run(
                ['mypy', '--strict', f'--cache-dir={cache}',
                 str(PACKAGE / 'optfarm'), str(PACKAGE / 'wheel_backend.py'),
                 str(testing.SOURCE / 'examples/training_pipeline/gate.py'),
                 str(testing.SOURCE / 'examples/ci/post_comment.py')],
                capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_what_is_public_is_described(self):
        for name in optfarm.__all__:
            self.assertTrue(getattr(optfarm, name).__doc__, name)
        for name, value in vars(optfarm.Client).items():
            if not name.startswith('_') and callable(value):
                self.assertTrue(value.__doc__, name)


class WheelTest(unittest.TestCase):

    def test_pip_installs_it_without_network_and_build_tools(self):
        with tempfile.TemporaryDirectory() as folder:
            venv = pathlib.Path(folder) / 'venv'
            made = subprocess.run([sys.executable, '-m', 'venv', str(venv)],
                                  capture_output=True, text=True, check=False)
            if made.returncode:
                self.skipTest(f'no venv with pip: {made.stdout[-200:]}')
            # Folders named build and the like must not be written to.
            source = pathlib.Path(folder) / 'source'
            shutil.copytree(PACKAGE, source)
            python = venv / 'bin/python'
            environment = {**os.environ, 'PIP_NO_INDEX': '1',
                           'PIP_CONFIG_FILE': os.devnull}
            subprocess.run([python, '-m', 'pip', 'uninstall', '-q', '-y',
                            'setuptools', 'wheel'], check=True,
                           capture_output=True, env=environment)
            for what in (['wheel', '--wheel-dir', folder], ['install']):
                run = subprocess.run(
                    [python, '-m', 'pip', *what, '--no-deps', str(source)],
                    capture_output=True, text=True, check=False,
                    env=environment)
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            wheel, = pathlib.Path(folder).glob('optfarm-*.whl')
            names = zipfile.ZipFile(wheel).namelist()
            self.assertIn('optfarm/py.typed', names)
            self.assertIn('optfarm/__main__.py', names)
            check = subprocess.run(
                [python, '-I', '-c', 'import optfarm, importlib.metadata as m;'
                 'print(optfarm.__file__, m.version("optfarm"))'],
                capture_output=True, text=True, check=True)
            self.assertIn('site-packages', check.stdout)
            self.assertIn(f' {optfarm.__version__}', check.stdout)
            subprocess.run([python, '-m', 'pip', 'check'], check=True,
                           capture_output=True)

    def test_an_editable_install_and_a_source_archive(self):
        sys.path.insert(0, str(PACKAGE))
        self.addCleanup(sys.path.remove, str(PACKAGE))
        import wheel_backend
        with tempfile.TemporaryDirectory() as folder:
            name = wheel_backend.build_editable(folder)
            archive = zipfile.ZipFile(pathlib.Path(folder) / name)
            self.assertEqual(archive.read('optfarm.pth').decode().strip(),
                             str(PACKAGE))
            name = wheel_backend.build_sdist(folder)
            unpacked = pathlib.Path(folder) / 'unpacked'
            shutil.unpack_archive(pathlib.Path(folder) / name, unpacked)
            self.assertTrue(list(unpacked.glob('*/wheel_backend.py')))


class ArgumentsTest(unittest.TestCase):

    def test_inputs_in_every_form(self):
        image = [{'name': 'image', 'shape': ['1', '224', '224', '3'],
                  'shape_known': True}]
        for given in ('image:1,224,224,3', 'image:[1,224,224,3]',
                      ['image:1,224,224,3'], {'image': (1, 224, 224, 3)},
                      [('image', [1, 224, 224, 3])],
                      {'name': 'image', 'shape': [1, 224, 224, 3]},
                      [{'name': 'image', 'shape': (1, 224, 224, 3),
                        'shape_known': True}]):
            self.assertEqual(spec.tensors(given), image, given)
        self.assertEqual(spec.tensors(None), [])
        self.assertEqual(spec.tensors({'a': None, 'b': []}), [
            {'name': 'a'}, {'name': 'b', 'shape': [], 'shape_known': True}])
        self.assertEqual(
            [one['name'] for one in spec.tensors('a:1,2,b,c:0:3,4,d:1')],
            ['a', 'b', 'c:0', 'd:1'])
        self.assertEqual(spec.tensors('a:?,2')[0]['shape'], ['-1', '2'])
        self.assertEqual(spec.tensors({'a': (None, 2)})[0]['shape'],
                         ['-1', '2'])

    def test_inputs_in_a_wrong_form_say_what_to_give(self):
        for given in (7, [7], {'a': 'abc'}, {'a': 5}, {'a': (1.5,)},
                      {'a': (True,)}, {'a': (-2,)}, [{'shape': [1]}],
                      [{'name': 'a', 'form': [1]}], {'': (1,)}, 'a:[1,x]',
                      ['a:1,x'], [('a',)]):
            with self.subTest(given), self.assertRaisesRegex(
                    (TypeError, ValueError), r"inputs.*'image:1,224,224,3'"):
                spec.tensors(given)

    def test_times_formats_and_fractions(self):
        self.assertEqual(spec.duration(90, 'x'), '90s')
        self.assertEqual(spec.duration('1.5m', 'x'), '90s')
        self.assertEqual(spec.duration('250ms', 'x'), '0.25s')
        with self.assertRaisesRegex(ValueError, "max_time is 'soon'; give"):
            spec.duration('soon', 'max_time')
        self.assertTrue(spec.is_graph('a.PB'))
        self.assertFalse(spec.is_graph('a.onnx'))
        with self.assertRaisesRegex(ValueError, "'m.pt' does not say which"):
            spec.is_graph('m.pt')
        with self.assertRaisesRegex(ValueError, 'fraction'):
            spec.conditions(threads=(), min_runs=0, min_time=None,
                            max_time=None, warmup_runs=0, precision=2,
                            cpus=(), cool_down=None, engines=())
        with self.assertRaisesRegex(ValueError, "'wait'; give queue"):
            spec.deadlines({'wait': 1})

    def test_data_that_are_not_there_are_named(self):
        for given, says in (({'x': '/none.npy'}, "/none.npy' to feed input"),
                            ('/none', 'no folder'), (3, 'calibration has 3'),
                            ([b'x'], 'calibration has')):
            with self.subTest(given), self.assertRaisesRegex(
                    (TypeError, ValueError), says):
                data.sources(given, None, None, None)
        with self.assertRaisesRegex(ValueError, "'/none.txt' with labels"):
            data.sources(None, '/none.txt', None, None)
        with self.assertRaisesRegex(ValueError, 'input_std is 0'):
            data.sources(None, None, 0, 0)

    def test_a_missing_optctl_is_said(self):
        with self.assertRaisesRegex(optfarm.ToolMissing, "'/none/optctl'"):
            local.find_optctl('/none/optctl')


class ReportsTest(unittest.TestCase):

    def setUp(self):
        self.report = optfarm.report(PRINTED)

    def test_what_optctl_prints_is_a_report(self):
        self.assertTrue(self.report.passed)
        self.assertEqual(self.report.verdict('int8').answer, 'YES')
        self.assertEqual(self.report.verdict('int8').size_ratio, 0.25)
        self.assertEqual(self.report.verdict('int8').top1_change, -0.5)
        self.assertEqual(self.report.speedup('int8'), 2.0)

    def test_rows_are_flat(self):
        rows = self.report.to_dicts()
        self.assertEqual([row['median_ms'] for row in rows], [0.2, 0.1])
        self.assertEqual(rows[1]['answer'], 'YES')
        flat, = optfarm.to_dicts([{'a': {'size_bytes': '12', 'b': {'c': 1}}}])
        self.assertEqual(flat, {'a_size_bytes': 12, 'a_b_c': 1})
        with self.assertRaisesRegex(TypeError, 'has no fields'):
            optfarm.to_dicts([3])

    def test_a_dataframe_where_pandas_is(self):
        script = (
            f'import sys, json; sys.path.insert(0, {str(PACKAGE)!r})\n'
            'import optfarm\n'
            'frame = optfarm.report(json.load(sys.stdin)).to_dataframe()\n'
            'assert list(frame["median_ms"]) == [0.2, 0.1], frame\n'
            'frame = optfarm.to_dataframe([{"create_time": '
            '"2026-11-23T10:00:00Z"}, {"create_time": None}])\n'
            'assert frame["create_time"].dt.hour[0] == 10, frame\n')
        tried = []
        for python in (sys.executable, '/usr/bin/python3'):
            if subprocess.run([python, '-c', 'import pandas'], check=False,
                              capture_output=True).returncode:
                tried.append(python)
                continue
            subprocess.run([python, '-B', '-c', script], check=True,
                           input=json.dumps(PRINTED), text=True)
            return
        if tried[0] == sys.executable:
            with self.assertRaisesRegex(ImportError, 'pip install pandas'):
                self.report.to_dataframe()
        self.skipTest(f"pandas is not installed for {', '.join(tried)}")

    def test_markdown_has_verdict_table_and_gates(self):
        text = self.report.to_markdown('nightly')
        self.assertEqual(text.splitlines()[0], '### nightly')
        self.assertIn('✅ int8 on pi4: yes: 0.25x size, 2.00x faster', text)
        self.assertIn('| int8 | pi4 | 1 | 250 B | 0.1 ms | 97.50 % |', text)
        self.assertIn('1 gate held', text)
        failed = optfarm.report({
            'state': 'FAILED', 'failure': {'message': 'gate failed'},
            'gates': [{'name': 'max_size_ratio', 'passed': False,
                       'message': 'too large'}]}).to_markdown()
        self.assertIn('❌ FAILED: gate failed', failed)
        self.assertIn('- ❌ **max\\_size\\_ratio**: too large', failed)

    def test_names_of_others_stay_text_in_markdown_and_html(self):
        evil = '<img src=x onerror=alert(1)> | [a](http://b) @all `c`\n# d'
        job = json.loads(json.dumps(PRINTED).replace('"pi4"',
                                                     json.dumps(evil)))
        job['job_id'] = '`](http://x)'
        text = optfarm.report(job).to_markdown(evil)
        table = [line for line in text.splitlines() if line.startswith('| ')]
        for line in table:
            self.assertEqual(line.replace('\\|', '').count('|'), 8, line)
        for bad in ('<img', '](http', '@all', '://', '\n# d'):
            self.assertNotIn(bad, text)
        page = optfarm.report(job)._repr_html_()
        self.assertNotIn('<img', page)
        self.assertIn('&lt;img', page)
        self.assertEqual(markdown.plain('a|b'), 'a\\|b')

    def module(self, *words, given=''):
        return subprocess.run(
            [sys.executable, '-B', '-m', 'optfarm', *words], input=given,
            cwd=PACKAGE, capture_output=True, text=True, check=False)

    def test_the_module_prints_reports(self):
        given = json.dumps(PRINTED)
        shown = self.module('report', '--check', given=given)
        self.assertEqual((shown.returncode, shown.stdout),
                         (0, self.report.to_markdown()), shown.stderr)
        rows = json.loads(self.module('report', '--format=json',
                                      given=given).stdout)
        self.assertEqual(rows, self.report.to_dicts())
        table = self.module('report', '--format=csv', given=given).stdout
        self.assertEqual(len(table.splitlines()), 3)
        bad = self.module('report', '--check',
                          given=given.replace('SUCCEEDED', 'FAILED'))
        self.assertEqual(bad.returncode, 1)
        for wrong in ('[]', 'x', '{}'):
            run = self.module('report', given=wrong)
            self.assertEqual(run.returncode, 2)
            self.assertTrue(run.stderr.startswith('optfarm report: '))


class ProgressTest(unittest.TestCase):

    JOB = {'job_id': 'j', 'state': 'RUNNING', 'tasks': [
        {'kind': 'OPTIMIZE', 'state': 'LEASED', 'progress': 0.5,
         'progress_message': 'calibrating', 'device': ''},
        {'kind': 'BENCHMARK', 'state': 'BLOCKED', 'device': 'pi4'}]}

    def test_a_line_says_what_goes_on(self):
        self.assertEqual(progress.describe(self.JOB),
                         'job j running | optimize 50 % calibrating')
        waiting = {'job_id': 'j', 'state': 'QUEUED', 'tasks': [
            {'kind': 'OPTIMIZE', 'state': 'READY', 'device': ''}]}
        self.assertIn('optimize waits for a worker',
                      progress.describe(waiting))

    def test_terminals_are_rewritten_and_files_left_alone(self):
        out = io.StringIO()
        line = progress.Line(True, out)
        line.show('a long line')
        line.show('short')
        line.end()
        self.assertEqual(out.getvalue(), '\ra long line\rshort      \n')
        out = io.StringIO()
        line = progress.Line(None, out)
        line.show('x')
        line.end()
        self.assertEqual(out.getvalue(), '')
        seen = []
        line = progress.Line(seen.append, out)
        for text in ('a', 'a', 'b'):
            line.show(text)
        line.bytes(1, 2)
        self.assertEqual(seen[:2], ['a', 'b'])

    def test_notebooks_get_one_output_that_changes(self):
        script = (
            f'import sys; sys.path.insert(0, {str(PACKAGE)!r})\n'
            'import IPython, IPython.display as display\n'
            'from optfarm import progress\n'
            'class Shell: kernel = 1\n'
            'IPython.get_ipython = lambda: Shell\n'
            'told = []\n'
            'class Handle:\n'
            '    def update(self, content, raw): told.append(content)\n'
            'def show(content, raw, display_id):\n'
            '    told.append(content); return Handle()\n'
            'display.display = show\n'
            'line = progress.Line()\n'
            'line.show("a"); line.show("b"); line.end()\n'
            'assert told == [{"text/plain": "a"}, {"text/plain": "b"}], told\n')
        run = subprocess.run([sys.executable, '-B', '-c', script],
                             capture_output=True, text=True, check=False)
        if 'No module named' in run.stderr and 'IPython' in run.stderr:
            self.skipTest('IPython is not installed')
        self.assertEqual(run.returncode, 0, run.stderr)


class LocalTest(unittest.TestCase):
    """A whole job without a server."""

    DIGITS = testing.SOURCE / 'examples/digits'

    def test_a_job_on_this_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / 'int8.onnx'
            report = optfarm.run(
                self.DIGITS / 'digits.pb', 'int8',
                calibration=self.DIGITS / 'images', input_mean=127.5,
                input_std=127.5, threads=[1], min_runs=3, max_time='10s',
                out_graph=made, optctl=OPTCTL)
            self.assertTrue(report.passed, report.failure)
            self.assertEqual(report.recipe, 'int8')
            self.assertGreater(report.row('int8', threads=1).median_ms, 0)
            self.assertLess(report.verdict('int8').size_ratio, 0.5)
            self.assertGreater(report.top1_before, 90)
            self.assertGreater(made.stat().st_size, 1000)
            self.assertIn('| int8 |', report.to_markdown())

    def test_mistakes_are_errors_that_say_what_to_do(self):
        model = self.DIGITS / 'digits.pb'
        with self.assertRaisesRegex(optfarm.InvalidArgument, 'int8'):
            optfarm.run(model, 'int9', optctl=OPTCTL, measure=False)
        with self.assertRaisesRegex(optfarm.InvalidArgument, 'calibration'):
            optfarm.run(model, CAREFUL, optctl=OPTCTL)
        with self.assertRaisesRegex(TypeError, 'YAML'):
            optfarm.run(model, {'name': 'x'}, optctl=OPTCTL)
        with self.assertRaises(optfarm.Timeout):
            optfarm.run(model, 'fp32', optctl=OPTCTL, timeout=0.01)

    def test_yaml_recipes_are_read_as_optctl_reads_them(self):
        recipe = local.recipe_of_yaml(CAREFUL, OPTCTL)
        self.assertEqual(recipe['name'], 'careful_int8')
        self.assertEqual(recipe['bounds']['max_accuracy_drop'], 0.5)
        with self.assertRaisesRegex(ValueError, 'no recipe file'):
            local.recipe_of_yaml('/none.yaml', OPTCTL)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
