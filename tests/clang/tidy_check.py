#!/usr/bin/env python3
"""Runs clang-tidy, with the checks of .clang-tidy, on files that changed: since
the commit where this branch left main, or since the last commit on main itself,
and on what is not committed yet. A header is checked through a file that
includes it.

usage: tidy_check.py SOURCE_FOLDER BUILD_FOLDER [--since COMMIT] [--most N]
                     [FILE...]
  --since COMMIT   what changed since COMMIT
  --most N         at most N files, spread evenly over the changed ones
  FILE             these files, whether they changed or not
"""

import argparse
import pathlib
import subprocess
import sys

from clang_build import (ClangBuild, changed_files, find_tool, for_each,
                         spread)

ROOMS = {'base', 'rpc', 'http', 'engine', 'storage', 'server', 'worker',
         'device_agent', 'client_cli'}


def sources_for(build, files):
    """Of each file the .cc to check it by."""
    sources = set(build.sources())
    chosen = []
    for file in files:
        path = pathlib.Path(file)
        if path.parts[0] not in ROOMS or path.suffix not in ('.cc', '.h'):
            continue
        own = str(path.with_suffix('.cc'))
        if own in sources:
            chosen.append(own)
        else:
            chosen += [source for source in sorted(sources)
                       if file in build.includes(source)][:1]
    return sorted(set(chosen))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('source_folder')
    parser.add_argument('build_folder')
    parser.add_argument('--since')
    parser.add_argument('--most', type=int)
    parser.add_argument('files', nargs='*')
    flags = parser.parse_intermixed_args()
    tidy = find_tool('clang-tidy')
    build = ClangBuild(flags.source_folder, flags.build_folder)
    files = flags.files or changed_files(build.root, flags.since)
    sources = sources_for(build, files)
    count = len(sources)
    sources = spread(sources, flags.most)

    def check(source):
        command = [tidy, '--quiet', '--warnings-as-errors=*',
                   str(build.root / source), '--', *build.arguments(source)]
        done = subprocess.run(command, capture_output=True, text=True,
                              check=False)
        return (done.stdout + done.stderr) if done.returncode else ''

    found = [output for output in for_each(sources, check) if output]
    print(*found, sep='\n')
    print(f'{len(sources)} of {count} changed files, {len(found)} with findings')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
