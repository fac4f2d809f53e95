#!/usr/bin/env python3
"""Checks the text of our files: no paths of one person's machine, no notes about
work left undone, no tabs or trailing blanks, a newline at the end, no source
line beyond 120 columns.
"""

import re

from source_tree import SourceTree

CHECKED = ('.h', '.cc', '.py', '.md', '.cmake', '.proto', '.yaml', '.yml',
           '.json', '.txt', '.sql', '')
LONGEST_LINE = 120
# In two pieces each, so that this file passes.
FORBIDDEN = (
    (re.compile(r'(?<![\w.])/' r'(work|root|home)/'), 'a path of one machine'),
    (re.compile(r'\b(TO' r'DO|FIX' r'ME|X' r'XX)\b'),
     'work left undone: do it, or open an issue'),
    (re.compile(r'\t'), 'a tab'),
    (re.compile(r'[ \t\r]+$'), 'blanks at the end of the line'),
)
LICENCE_FILES = ('LICENSE',)


def check_file(tree, path):
    text = tree.read(path)
    if text and not text.endswith('\n'):
        tree.problem(path, 'does not end with a newline')
    for number, line in enumerate(text.split('\n'), 1):
        for pattern, what in FORBIDDEN:
            if pattern.search(line):
                tree.problem(f'{path}:{number}', what)
        if len(line) > LONGEST_LINE and path.suffix != '.md':
            tree.problem(f'{path}:{number}', f'{len(line)} columns')


def is_data(path):
    """Files that are compared or read byte for byte."""
    return 'testdata' in path.parts or path.parts[:2] == ('tests', 'golden') and (
        path.suffix not in ('.cc', '.h', '.md'))


def main():
    tree = SourceTree()
    for path in tree.files():
        if path.suffix not in CHECKED or is_data(path):
            continue
        if path.name not in LICENCE_FILES:
            check_file(tree, path)
    tree.finish()


if __name__ == '__main__':
    main()
