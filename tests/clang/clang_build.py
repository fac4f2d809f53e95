"""What the checks by clang share: a build's compilations as clang understands
them. They only parse, so they work with any preset that was built.

A check takes the source and the build folder, prints what it found and exits
with 1 when there was anything; 77 tells CTest that it was skipped.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

SKIP_CODE = 77
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
# The file that CMake makes of several (OPTFARM_UNITY).
_UNITY = re.compile(r'/Unity/unity_[^/]*\.cxx$')
# Optimization, g++'s own warnings and headers that it compiled are left out.
_KEPT = ('-D', '-I', '-std=', '-m', '-pthread')


def skip(reason):
    """Ends the process the way CTest counts as skipped."""
    print(f'SKIP: {reason}')
    sys.exit(SKIP_CODE)


def find_tool(name):
    """The path of clang++ or clang-tidy; skips the check without it."""
    path = shutil.which(name) or shutil.which(f'{name}-14')
    if not path:
        skip(f'{name} is not installed')
    return path


def git(root, *words):
    """The lines that git prints; skips the check where there is no history."""
    done = subprocess.run(['git', '-C', str(root), *words], check=False,
                          capture_output=True, text=True)
    if done.returncode:
        skip(f'git {" ".join(words)}: {done.stderr.strip()}')
    return done.stdout.splitlines()


def changed_files(root, since=None):
    """Files that differ from commit `since`. Without one: from the commit where
    this branch left main, or from the last commit but one on main itself."""
    if not since:
        head = git(root, 'rev-parse', 'HEAD')[0]
        for main in ('origin/main', 'main'):
            done = subprocess.run(
                ['git', '-C', str(root), 'merge-base', 'HEAD', main],
                check=False, capture_output=True, text=True)
            if done.returncode == 0:
                since = done.stdout.strip()
                break
        if not since or since == head:
            since = 'HEAD~1'
    return git(root, 'diff', '--name-only', '--diff-filter=d', since)


def spread(sources, most):
    """At most `most` of the sources, evenly; all without a limit."""
    if most and len(sources) > most:
        return sources[::-(-len(sources) // most)]
    return sources


class ClangBuild:
    """The compilations of BUILD_FOLDER whose sources are in SOURCE_FOLDER."""

    def __init__(self, source_folder, build_folder):
        self.root = pathlib.Path(source_folder).resolve()
        self.folder = pathlib.Path(build_folder).resolve()
        database = self.folder / 'compile_commands.json'
        if not database.exists():
            skip(f'there is no {database}; scripts/build makes it')
        self._entries = {}
        for entry in json.loads(database.read_text(encoding='utf-8')):
            for source in self._sources_of(pathlib.Path(entry['file'])):
                if (source.is_relative_to(self.root) and
                        not source.is_relative_to(self.folder)):
                    name = str(source.relative_to(self.root))
                    self._entries.setdefault(name, entry['command'])
        self._texts = {}

    @staticmethod
    def _sources_of(file):
        if not _UNITY.search(str(file)):
            return [file]
        text = file.read_text(encoding='utf-8')
        return [pathlib.Path(path) for path in _INCLUDE.findall(text)]

    def sources(self):
        """The .cc files that are compiled, relative to the source folder."""
        return sorted(self._entries)

    def arguments(self, source):
        """The options that decide how `source` is parsed."""
        words = shlex.split(self._entries[source])
        kept = []
        for word, following in zip(words, words[1:] + ['']):
            if word == '-isystem':
                kept += [word, following]
            elif word.startswith(_KEPT) and not word.startswith('-mprefer'):
                kept.append(word)
        return kept

    def text(self, path):
        """The text of a file of ours; empty for what is not in the tree."""
        if path not in self._texts:
            file = self.root / path
            self._texts[path] = (file.read_text(encoding='utf-8')
                                 if file.is_file() else '')
        return self._texts[path]

    def includes(self, path):
        """Headers of ours that the file itself includes."""
        return [name for name in _INCLUDE.findall(self.text(path))
                if self.text(name)]


def for_each(items, check):
    """Calls check(item) for all items, as many at a time as there are
    processors; returns the results in the items' order."""
    jobs = int(os.environ.get('OPTFARM_JOBS') or os.cpu_count() or 1)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(check, items))
