#!/usr/bin/env python3
"""Checks that every C++ file of ours is formatted as .clang-format says.
Versions of clang-format disagree in details, so only version 14 is asked.
"""

import re
import shutil
import subprocess

from source_tree import SourceTree, skip

VERSION = '14'


def find_formatter():
    for name in (f'clang-format-{VERSION}', 'clang-format'):
        path = shutil.which(name)
        if path:
            answer = subprocess.run([path, '--version'], capture_output=True,
                                    text=True, check=True).stdout
            if re.search(rf'version {VERSION}\.', answer):
                return path
    return None


def main():
    tree = SourceTree()
    formatter = find_formatter()
    if not formatter:
        skip(f'clang-format-{VERSION} is not installed')
    files = [str(path) for path in tree.files('.h', '.cc')]
    run = subprocess.run(
        [formatter, '--dry-run', '-Werror', '--style=file', *files],
        cwd=tree.root, capture_output=True, text=True)
    for path in sorted(set(re.findall(r'^(\S+?):\d+:\d+: error', run.stderr,
                                      re.MULTILINE))):
        tree.problem(path, 'is not formatted; run scripts/format')
    if run.returncode != 0 and not tree.problems:
        tree.problem(formatter, run.stderr.strip())
    tree.finish()


if __name__ == '__main__':
    main()
