#!/usr/bin/env python3
"""Every command of README and docs: those of users run as they stand, with a
farm and a model in the place of the names that the pages make up; every other
one has its reason below. Whatever else the pages say of optctl names commands
and flags that there are. The commands of docs/rest.md and the code of
docs/python.md have tests of their own."""

import os
import re
import shutil
import subprocess
import sys
import unittest

import farm as testing

PAGES = [testing.SOURCE / 'README.md', testing.SOURCE / 'CONTRIBUTING.md',
         *sorted((testing.SOURCE / 'docs').glob('*.md')),
         *sorted((testing.SOURCE / 'examples').glob('*/README.md'))]
TOOLS = ('transform_graph', 'freeze_graph', 'benchmark_model')
PROGRAM = re.compile(
    r'(?:[A-Z_]+=\S+ )*(?:source <\()?(?:\./|build/\w+/bin/)?(?:optctl|optfarm-\w+|scripts/\w+|'
    r'python3? |pip |apt|apt-cache|podman(?:-compose)?|cmake|curl|tests/\w+|'
    r'build/\w+/bin/\w+|gunzip|for image|cp build|' + '|'.join(TOOLS) + r')\b')

# Why a command is not run here, by what it begins with. The test fails for one
# that no page has any more.
NOT_HERE = {
    r'(\./)?scripts/(quickstart|test|build|lint|format|check_changes|fuzz)\b':
        'builds, or is what runs this test',
    r'(\./)?scripts/farm ': 'tests/scripts/farm_test.py',
    r'(\./)?scripts/package': 'scripts/test_packages',
    r'(apt|apt-cache) |cp build/apt': 'scripts/test_packages installs them',
    r'for image in|podman': 'wants containers; see docs/installation.md',
    r'cmake |(OPTFARM_\w+=\S+ )?build/\w+/bin/\w+_test': 'builds',
    r'(build/release/bin/)?optfarm-(server|worker|agent) ':
        'goes on until it is stopped; the farm of this test is started so',
    r'.* --engine=': 'wants a runtime of the user\'s own',
    r'OPTFARM_\w+=\S+ tests/web': 'the page\'s own tests',
    r'python freeze_graph\.py': 'TensorFlow\'s own',
    r'pip ': 'tests/python/package_test.py',
    r'scripts/measure_': 'measures for a long time',
    r'optctl graph convert --in_graph=int8_qdq':
        'tests/client_cli/graph_convert_test.cc',
}

# Names that the pages make up, and what stands for them here.
STANDS_FOR = [
    (r'\bimage=cat\.npy', 'input=batch.npy'),
    (r'--output=(probabilities|scores|StatefulPartitionedCall:0)\b',
     '--output=softmax'),
    (r'--input=(input|serving_default_x):0=x\.npy', '--input=input=batch.npy'),
    (r'--in_graph=in\.pb', '--in_graph=model.pb'),
    (r'--inputs=x --outputs=y', '--inputs=input --outputs=softmax'),
    (r'--graphs=float\.pb,int8\.pb', '--graphs=model.pb,model_int8.pb'),
    (r'\bJOB\b', 'latest'),
    (r'\bOTHER_JOB\b', 'latest'),
    (r'--labels=labels\.txt', ''),
    # A bound on accuracy wants labels, and labels the right scale.
    (r'(tune .*)--calibration=pictures/',
     r'\1--calibration=labelled/ --input_mean=127.5 --input_std=127.5'),
    (r'--(in_)?graph=(m|before|conv_actions_frozen)\.pb', r'--\1graph=model.pb'),
]


def without_code(text):
    return re.sub(r'^```python\n.*?^```$', '', text, flags=re.M | re.S)


def commands_of(page):
    """The commands of a page's blocks, continued lines joined."""
    commands, fence, typed = [], None, ''
    for line in without_code(page.read_text()).split('\n'):
        if line.startswith('```'):
            fence = None if fence is not None else line[3:]
            continue
        indented = re.match(r'    +(.*)$', line)
        if fence is not None:
            # Without a prompt it may be what a command prints.
            if fence != 'sh' and not line.startswith('$ '):
                continue
            body = line[2:] if line.startswith('$ ') else line
        elif indented:
            body = indented.group(1)
        else:
            continue
        typed += body
        if typed.endswith('\\'):
            typed = typed[:-1]
            continue
        command, typed = re.sub(r'\s+#.*$', '', typed).strip(), ''
        is_drawing = re.search('[─◀▶]', command)
        if PROGRAM.match(command) and not is_drawing:
            commands.append(command)
    return commands


def words_of_optctl(text):
    """What follows optctl in blocks, tables and sentences."""
    for span in re.findall(r'`optctl ([^`\n]*)`', text):
        yield span.split()
    for line in re.findall(r'^    +(?:\S*/)?optctl (.*)$', text, re.M):
        yield re.sub(r'\s+#.*$', '', line).split()


class DocumentedCommandsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.farm = testing.Farm(agents=[('local',), ('pi4',), ('pixel7',)])
        cls.folder = cls.farm.folder / 'page'
        home = cls.farm.folder / 'home'
        for folder in (cls.folder / 'build/release', home / '.zsh/completions',
                       home / '.config/fish/completions'):
            folder.mkdir(parents=True)
        (cls.folder / 'build/release/bin').symlink_to(testing.BIN.resolve())
        (cls.folder / 'examples').symlink_to(testing.SOURCE / 'examples')
        shutil.copy(testing.SOURCE / 'examples/digits/digits.pb',
                    cls.folder / 'model.pb')
        for name in ('pictures', 'images'):
            (cls.folder / name).mkdir()
            for digit in range(10):
                (cls.folder / 'labelled' / str(digit)).mkdir(
                    parents=True, exist_ok=True)
                source = testing.SOURCE / f'examples/digits/images/{digit}'
                for picture in sorted(source.iterdir())[:3]:
                    shutil.copy(picture, cls.folder / name /
                                f'{digit}_{picture.name}')
                    shutil.copy(picture, cls.folder / 'labelled' / str(digit))
        cls.environment = {
            **cls.farm.environment(), 'HOME': str(home),
            'PATH': f'{testing.BIN.resolve()}:{os.environ["PATH"]}',
            'OPTFARM_SERVER': cls.farm.grpc, 'PYTHONDONTWRITEBYTECODE': '1',
            'PYTHONPATH': str(testing.SOURCE / 'python'),
            'OPTFARM_OPTCTL': str(testing.BIN.resolve() / 'optctl')}
        for command in (
                'optctl graph convert --in_graph=model.pb --out_graph=model.onnx',
                'optctl graph convert --in_graph=model.pb '
                '--out_graph=model.tflite',
                f'optctl config set-context home --server={cls.farm.grpc} '
                f'--token_file={cls.farm.token_file}',
                'optctl submit model.pb --recipe=fp32 --wait'):
            run = cls.shell(command)
            assert run.returncode == 0, run.stdout + run.stderr
        cls.write_batch()
        shutil.copy(cls.farm.token_file, home / 'lab.token')
        (cls.folder / 'lab-ca.pem').write_text(
            '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n')

    @classmethod
    def tearDownClass(cls):
        cls.farm.close()

    @classmethod
    def shell(cls, command):
        return subprocess.run(['bash', '-c', command], cwd=cls.folder,
                              env=cls.environment, capture_output=True,
                              text=True, check=False,
                              stdin=subprocess.DEVNULL)

    @classmethod
    def write_batch(cls):
        """One picture of zeros, as NumPy writes it."""
        header = "{'descr': '<f4', 'fortran_order': False, " \
                 "'shape': (1, 32, 32, 3), }"
        header += ' ' * (63 - (len(header) + 10) % 64) + '\n'
        (cls.folder / 'batch.npy').write_bytes(
            b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') +
            header.encode() + bytes(4 * 32 * 32 * 3))

    def test_commands_of_the_pages_run(self):
        reasons, ran = set(), set()
        for page in PAGES:
            if page.name == 'rest.md':
                continue
            for command in commands_of(page):
                reason = next((one for one in NOT_HERE
                               if re.match(one, command)), None)
                if reason:
                    reasons.add(reason)
                    continue
                for name, instead in STANDS_FOR:
                    command = re.sub(name, instead, command)
                if command in ran:
                    continue
                ran.add(command)
                with self.subTest(page=page.name, command=command):
                    run = self.shell(command)
                    # A bound that is missed is an answer.
                    self.assertIn(run.returncode, (0, 6),
                                  run.stdout + run.stderr)
        self.assertEqual(reasons, set(NOT_HERE), 'not on any page any more')
        self.assertGreater(len(ran), 35)


class DocumentedFlagsTest(unittest.TestCase):

    @staticmethod
    def help(*words):
        return subprocess.run([testing.BIN / 'optctl', 'help', *words],
                              capture_output=True, text=True,
                              check=False).stdout

    def test_what_the_pages_name_is_there(self):
        listed = self.help()
        names = set(re.findall(r'^  ([a-z]+(?: [a-z-]+)?)\b', listed, re.M))
        flags = {}
        looked_at = 0
        for page in PAGES:
            for words in words_of_optctl(without_code(page.read_text())):
                name = next((' '.join(words[:count]) for count in (2, 1)
                             if ' '.join(words[:count]) in names), None)
                if name is None:
                    self.assertFalse(
                        words and re.fullmatch(r'[a-z]+', words[0]) and
                        words[0] not in ('graph', 'help', 'completion',
                                         'config', 'token', 'blobs'),
                        f'{page.name}: optctl {" ".join(words)}')
                    continue
                if name not in flags:
                    text = self.help(*name.split())
                    flags[name] = set(re.findall(r'--(\w+)', text))
                for flag in re.findall(r'(?<!\S)--([\w-]+)', ' '.join(words)):
                    looked_at += 1
                    self.assertIn(flag.replace('-', '_'), flags[name],
                                  f'{page.name}: optctl {" ".join(words)}')
        self.assertGreater(looked_at, 60)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
