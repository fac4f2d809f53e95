#!/usr/bin/env python3
"""scripts/apt_repository makes what apt installs, upgrades and downgrades from,
and notices tampering. apt runs with folders of its own, without root."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ('dpkg-scanpackages', 'dpkg-deb', 'apt-get', 'apt-cache')
MISSING = [tool for tool in TOOLS if not shutil.which(tool)]


@unittest.skipIf(MISSING, f"there is no {', '.join(MISSING)}")
class AptRepositoryTest(unittest.TestCase):

    def setUp(self):
        # A short path: gpg's sockets lie in it.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix='apt-', dir='/tmp'))
        self.addCleanup(shutil.rmtree, self.root)
        self.root.chmod(0o755)
        self.packages = self.root / 'packages'
        self.packages.mkdir()
        self.apt = self.root / 'apt'
        for name in ('state/lists/partial', 'cache/archives/partial', 'etc',
                     'log'):
            (self.root / name).mkdir(parents=True)
        (self.root / 'status').touch()

    def package(self, version, text='x'):
        tree = self.root / f'tree-{version}'
        (tree / 'DEBIAN').mkdir(parents=True, exist_ok=True)
        (tree / 'DEBIAN/control').write_text(
            f'Package: optfarm-try\nVersion: {version}\nArchitecture: all\n'
            'Maintainer: Optfarm <optfarm@localhost>\nDescription: a try\n')
        (tree / 'file').write_text(text)
        subprocess.run(['dpkg-deb', '--root-owner-group', '-b', str(tree),
                        str(self.packages / f'optfarm-try_{version}_all.deb')],
                       check=True, capture_output=True)

    def publish(self, path=None):
        return subprocess.run(
            [SOURCE / 'scripts/apt_repository', self.packages, self.apt],
            env={**os.environ, 'OPTFARM_SIGNING_HOME': str(self.root / 'key'),
                 **({'PATH': path} if path else {})},
            capture_output=True, text=True, check=False)

    def run_apt(self, *words):
        options = [
            f'Dir::State={self.root}/state', f'Dir::Cache={self.root}/cache',
            f'Dir::State::status={self.root}/status', 'Dir::Etc::parts=-',
            f'Dir::Etc::sourcelist={self.apt}/optfarm.list',
            'Dir::Etc::sourceparts=-', f'Dir::Log={self.root}/log',
            'Dir::Etc::preferencesparts=-', 'APT::Sandbox::User=',
            'Debug::NoLocking=1']
        return subprocess.run(
            [words[0], *(f'-o{option}' for option in options), *words[1:]],
            cwd=self.root, capture_output=True, text=True, check=False)

    def offered(self):
        update = self.run_apt('apt-get', 'update')
        self.assertEqual(update.returncode, 0, update.stderr)
        self.assertNotIn('W:', update.stderr)
        lines = self.run_apt('apt-cache', 'madison', 'optfarm-try').stdout
        return [line.split('|')[1].strip() for line in lines.splitlines()]

    def test_apt_upgrades_and_downgrades_from_it(self):
        self.package('1.0')
        made = self.publish()
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(made.stdout.strip(), str(self.apt))
        self.assertEqual(self.offered(), ['1.0'])
        # A release later, in a folder that has only the new one.
        (self.packages / 'optfarm-try_1.0_all.deb').unlink()
        self.package('1.1')
        self.assertEqual(self.publish().returncode, 0)
        self.assertEqual(self.offered(), ['1.1', '1.0'])
        for asked, version in (('optfarm-try', '1.1'),
                               ('optfarm-try=1.0', '1.0')):
            done = self.run_apt('apt-get', 'download', asked)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(
                (self.root / f'optfarm-try_{version}_all.deb').exists())
        self.package('1.1', 'built again')
        self.assertIn('until the version rises', self.publish().stderr)

    @unittest.skipUnless(shutil.which('gpg'), 'there is no gpg')
    def test_it_is_signed_and_apt_looks(self):
        self.package('1.0')
        made = self.publish()
        self.assertIn('making a key', made.stderr)
        self.assertNotIn('making a key', self.publish().stderr)
        self.assertIn('signed-by=', (self.apt / 'optfarm.list').read_text())
        self.assertEqual(self.offered(), ['1.0'])
        release = self.apt / 'InRelease'
        release.write_text(release.read_text().replace('Optfarm', 'Another'))
        (self.apt / 'Release.gpg').unlink()
        update = self.run_apt('apt-get', 'update')
        self.assertIn('BADSIG', update.stdout + update.stderr)

    def test_without_gpg_it_says_that_it_is_not_signed(self):
        self.package('1.0')
        bare = self.root / 'bin'
        bare.mkdir()
        for folder in os.environ['PATH'].split(':') + ['/usr/bin', '/bin']:
            for tool in pathlib.Path(folder).glob('*'):
                if (not tool.name.startswith('gpg') and
                        not (bare / tool.name).is_symlink()):
                    (bare / tool.name).symlink_to(tool)
        made = self.publish(str(bare))
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn('not signed', made.stderr)
        self.assertFalse((self.apt / 'InRelease').exists())
        self.assertEqual(self.offered(), ['1.0'])

    def test_a_folder_without_packages_is_refused(self):
        made = self.publish()
        self.assertEqual(made.returncode, 1)
        self.assertIn('run scripts/package', made.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
