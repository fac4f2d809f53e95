#!/usr/bin/env python3
"""Checks how the tree is laid out: the pages that every reader looks for are
there, the architecture page knows every room, no folder is crowded, scripts can
be run, headers have the guard that their path implies and open with their
purpose.
"""

import collections
import os
import re

from source_tree import SourceTree

PAGES = ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'LICENSE',
         'docs/architecture.md')
NOT_ROOMS = {'build', 'cmake', 'deploy', 'docs', 'examples', 'scripts', 'tests'}
# The most C++ files that one folder holds; more want rooms by role.
MOST_IN_A_FOLDER = 60
ADR_NAME = re.compile(r'\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.md$')


def check_pages(tree):
    for page in PAGES:
        if not (tree.root / page).is_file():
            tree.problem(page, 'is missing')
    for path in tree.files('.md'):
        if path.parts[:2] == ('docs', 'adr') and not ADR_NAME.match(path.name):
            tree.problem(path, 'is not named YYYY-MM-DD-name.md')


def check_rooms(tree):
    page = tree.read('docs/architecture.md')
    tops = {path.parts[0] for path in tree.files('.h', '.cc', '.proto')}
    for room in sorted(tops - NOT_ROOMS):
        if f'\n{room}/ ' not in page:
            tree.problem('docs/architecture.md', f'does not list room {room}/')


def check_crowds(tree):
    counts = collections.Counter(path.parent for path in tree.files('.h', '.cc'))
    for folder, count in sorted(counts.items()):
        if count > MOST_IN_A_FOLDER:
            tree.problem(folder, f'holds {count} C++ files, more than '
                         f'{MOST_IN_A_FOLDER}; split it by role')


def check_links(tree):
    """Relative links and named files of our pages lead somewhere."""
    for path in tree.files('.md'):
        for target in re.findall(r'`([\w./-]+/[\w-]+\.(?:h|cc|proto|md|py|pb|yaml))`',
                                 tree.read(path)):
            if not ((tree.root / target).exists() or
                    (tree.root / path.parent / target).exists()):
                tree.problem(path, f'names {target}, which is not there')
        # Brackets and parentheses also meet in code.
        prose = re.sub(r'^```.*?^```$', '', tree.read(path),
                       flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r'\]\(([^)#\s]+)[^)]*\)', prose):
            if '://' in target or target.startswith('mailto:'):
                continue
            if not (tree.root / path.parent / target).exists():
                tree.problem(path, f'links to {target}, which is not there')


def check_scripts(tree):
    for path in tree.files():
        is_script = path.parts[0] in ('scripts', '.ci') or (
            path.name.endswith('_lint.py'))
        if not is_script or path.suffix == '.md':
            continue
        if not os.access(tree.root / path, os.X_OK):
            tree.problem(path, 'is not executable')
        if not tree.read(path).startswith('#!'):
            tree.problem(path, 'does not start with #!')


def check_headers(tree):
    for path in tree.files('.h'):
        text = tree.read(path)
        guard = 'OPTFARM_' + re.sub(r'[^A-Za-z0-9]', '_', str(path)).upper() + '_'
        for line in (f'#ifndef {guard}\n#define {guard}\n',
                     f'#endif  // {guard}\n'):
            if line not in text:
                tree.problem(path, f'lacks its guard {guard}')
                break
        if not text.startswith('//'):
            tree.problem(path, 'does not open with a comment on its purpose')


def check_names(tree):
    for path in tree.files('.h', '.cc', '.py'):
        if re.search(r'(^|_)utils?(_|$)', path.stem):
            tree.problem(path, 'names no noun; call it after what it holds')


def main():
    tree = SourceTree()
    for check in (check_pages, check_rooms, check_crowds, check_links, check_scripts,
                  check_headers, check_names):
        check(tree)
    tree.finish()


if __name__ == '__main__':
    main()
