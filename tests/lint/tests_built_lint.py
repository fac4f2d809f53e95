#!/usr/bin/env python3
"""Checks that every test that exists is built and run: each *_test.cc lies in a
folder that tests/CMakeLists.txt names and holds at least one test, and each
*_lint.py lies where CTest looks for it.
"""

import re

from source_tree import SourceTree

TEST_MACRO = re.compile(
    r'^\s*(TYPED_TEST|TYPED_TEST_P|TEST|TEST_F|TEST_P)\(', re.MULTILINE)


def built_folders(tree):
    """Folders below tests/ whose *_test.cc, with those of their folders, become
    programs."""
    text = re.sub(r'#.*', '', tree.read('tests/CMakeLists.txt'))
    folders = set(re.findall(r'optfarm_tests\(\s*([^\s)]+)', text))
    for loop in re.findall(r'foreach\(\s*room\s([^)]*)\)', text):
        folders.update(loop.split())
    return folders


def main():
    tree = SourceTree()
    folders = built_folders(tree)
    for path in tree.files('.cc'):
        if not path.name.endswith('_test.cc'):
            continue
        if path.parts[0] != 'tests':
            tree.problem(path, 'tests live below tests/')
        elif not {folder.as_posix() for folder in
                  path.relative_to('tests').parents} & folders:
            tree.problem(path, 'its folder is not built; '
                         'name it in tests/CMakeLists.txt')
        elif not TEST_MACRO.search(tree.read(path)):
            tree.problem(path, 'holds no test')
    for path in tree.files('.py'):
        if path.name.endswith('_lint.py') and path.parent.as_posix() != 'tests/lint':
            tree.problem(path, 'CTest only runs tests/lint/*_lint.py')
    tree.finish()


if __name__ == '__main__':
    main()
