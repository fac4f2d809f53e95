#!/usr/bin/env python3
"""Checks who must hold which mutex: clang's -Wthread-safety over every file that
has to do with one. A member that is ABSL_GUARDED_BY a mutex is read and written
with the mutex held, and what ABSL_..._LOCKS_REQUIRED says is kept.

usage: locks_check.py SOURCE_FOLDER BUILD_FOLDER
"""

import re
import subprocess
import sys

from clang_build import ClangBuild, find_tool, for_each

LOCKS = re.compile(r'absl::Mutex\b|ABSL_[A-Z_]*(GUARDED_BY|LOCKS?)')


def main():
    compiler = find_tool('clang++')
    build = ClangBuild(*sys.argv[1:])

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
    found = [output for output in for_each(sources, check) if output]
    print(*found, sep='\n')
    print(f'{len(sources)} files, {len(found)} with findings')
    sys.exit(1 if found or not sources else 0)


if __name__ == '__main__':
    main()
