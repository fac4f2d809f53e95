#!/usr/bin/env python3
"""Checks who must hold which mutex: clang's -Wthread-safety over every file that
has to do with one. A member that is ABSL_GUARDED_BY a mutex is read and written
with the mutex held, and what ABSL_..._LOCKS_REQUIRED says is kept.

usage: locks_check.py SOURCE_FOLDER BUILD_FOLDER [--changed] [--since COMMIT]
                      [--most N]
  --changed        only files that changed since this branch left main, or since
                   the last commit but one on main itself, or that include a
                   header that did
  --since COMMIT   the same, since COMMIT
  --most N         at most N files, spread evenly over those
"""

import argparse
import re
import subprocess
import sys

from clang_build import (ClangBuild, changed_files, find_tool, for_each,
                         spread)

LOCKS = re.compile(r'absl::Mutex\b|ABSL_[A-Z_]*(GUARDED_BY|LOCKS?)')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('source_folder')
    parser.add_argument('build_folder')
    parser.add_argument('--changed', action='store_true')
    parser.add_argument('--since')
    parser.add_argument('--most', type=int)
    flags = parser.parse_args()
    compiler = find_tool('clang++')
    build = ClangBuild(flags.source_folder, flags.build_folder)

    def concerns_locks(source):
        """Mutexes are named by a file, or by a header that it includes itself."""
        return any(LOCKS.search(build.text(path))
                   for path in [source, *build.includes(source)])

    def check(source):
        command = [compiler, '-fsyntax-only', *build.arguments(source),
                   '-Wno-everything', '-Werror=thread-safety', '-Wthread-safety',
                   str(build.root / source)]
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
        return (done.stdout + done.stderr) if done.returncode else ''

    sources = [source for source in build.sources()
               if not source.startswith('tests/') and concerns_locks(source)]
    if not sources:
        sys.exit('no file has to do with a mutex: is the build folder complete?')
    count = len(sources)
    if flags.changed or flags.since:
        changed = set(changed_files(build.root, flags.since))
        sources = [source for source in sources
                   if not changed.isdisjoint([source, *build.includes(source)])]
    sources = spread(sources, flags.most)
    found = [output for output in for_each(sources, check) if output]
    print(*found, sep='\n')
    print(f'{len(sources)} of {count} files, {len(found)} with findings')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
