#!/usr/bin/env python3
"""Puts C++ files of a folder into groups that can be compiled as one.

usage: unity_groups.py SOURCE_DIR MOST OWN FILE...
  MOST  files in a group
  OWN   names, with commas between, that each file gets as its own (a macro)

Prints a line "FILE GROUP" for each file, in the order given. Two files share a
group only where nothing that one of them defines for itself (in an unnamed
namespace, static, a constant or a macro) is named by the other one or by a
header that only the other one reads: not even where a compiler could tell them
apart. So this reads words and knows little of C++; what it misses is a compile
error.
"""

import os
import re
import sys

_NOISE = re.compile(
    r'R"(?P<mark>[^()\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
    re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
_MACRO = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)', re.MULTILINE)
_DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', re.MULTILINE)
_TOKEN = re.compile(r'[A-Za-z_]\w*|\d[\w.]*|::|->|[^\s\w]')
_WORD = re.compile(r'[A-Za-z_]\w*$')
_TYPES = {'class', 'struct', 'union', 'enum'}
# They define what their first argument names.
_DEFINING_MACROS = re.compile(r'(MATCHER|ACTION)(_P\d*)?$')


def _without_noise(text):
    """Text without comments, and with empty literals."""

    def replaced(match):
        found = match.group(0)
        return ' ' if found.startswith('/') else '""'

    # A digit separator is no quote.
    return _NOISE.sub(replaced,
                      re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", '', text))


def _after_brackets(tokens, at, opening, closing):
    """Where what begins with `opening` at `at` has ended."""
    depth = 0
    while at < len(tokens):
        if tokens[at] == opening:
            depth += 1
        elif tokens[at] == closing:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def _name_of_type(statement):
    """What "class Name final : Base" and its like name, or nothing."""
    words = statement[1:]
    while words and (words[0] in _TYPES or words[0] in '[]'
                     or words[0] in ('nodiscard', 'alignas')):
        words = words[1:]
    return words[0] if words and _WORD.match(words[0]) else ''


def _without_template(statement):
    """A declaration without the "template <...>" before it."""
    at = 0
    while at < len(statement) and statement[at] == 'template':
        at = _after_brackets(statement, at + 1, '<', '>')
    return statement[at:]


def _name_of(statement):
    """The name that a declaration in a namespace gives to something, or ''."""
    statement = _without_template(statement)
    while statement and statement[0] in ('static', 'inline', 'constexpr',
                                         'const', 'extern', 'typedef'):
        statement = statement[1:]
    if not statement:
        return ''
    if statement[0] in _TYPES:
        return _name_of_type(statement)
    if statement[0] == 'using':
        # What is declared by "using a::b;" is the same for everybody.
        return statement[1] if statement[2:3] == ['='] else ''
    if _DEFINING_MACROS.match(statement[0]) and len(statement) > 2:
        return statement[2]
    depth = 0
    for i, token in enumerate(statement):
        if token == '<':
            depth += 1
        elif token == '>':
            depth -= 1
        elif depth <= 0 and token in '([={;' and i > 0:
            name = statement[i - 1]
            if not _WORD.match(name) or name.isupper() or name == 'operator':
                return ''
            return '' if i > 1 and statement[i - 2] == '::' else name
    return statement[-1] if _WORD.match(statement[-1]) else ''


class _Names:
    """Which names a file defines for itself, and which it uses at all."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            written = file.read()
        self.includes = _INCLUDE.findall(written)
        text = _without_noise(written)
        self.own = set(_MACRO.findall(text))
        text = _DIRECTIVE.sub(
            lambda m: m.group(0).split(None, 1)[-1]
            if 'define' in m.group(0) else '', text)
        tokens = _TOKEN.findall(text)
        self.used = {
            token
            for before, token in zip([''] + tokens, tokens)
            if _WORD.match(token) and before not in ('.', '->', '::')
        }
        self._read(tokens)

    def _read(self, tokens):
        scopes = []
        statement = []
        at = 0
        while at < len(tokens):
            token = tokens[at]
            at += 1
            if token == '}' and not statement:
                if scopes:
                    scopes.pop()
            elif token == '{':
                if 'namespace' in statement[:2] or statement[:1] == ['extern']:
                    scopes.append(statement == ['namespace'])
                    statement = []
                    continue
                at = _after_brackets(tokens, at - 1, '{', '}')
                goes_on = '=' in statement or any(
                    word in _TYPES for word in _without_template(statement)[:2])
                statement.append('{')
                if not goes_on and (at >= len(tokens)
                                    or tokens[at] not in ';,('):
                    self._declared(statement, scopes)
                    statement = []
            elif token == '(':
                # Of arguments only the first word matters, and only a macro's.
                end = _after_brackets(tokens, at - 1, '(', ')')
                statement.extend(
                    ['(', tokens[at] if at < len(tokens) else '', ')'])
                at = end
            elif token == ';':
                self._declared(statement, scopes)
                statement = []
            else:
                statement.append(token)

    def _declared(self, statement, scopes):
        is_constant = statement[:1] and statement[0] in (
            'const', 'constexpr') and '(' not in statement
        if any(scopes) or is_constant or 'static' in statement[:3]:
            self.own |= {_name_of(statement)} - {''}


class _Tree:
    """The files of a source tree, each read once."""

    def __init__(self, root):
        self._root = root
        self._names = {}
        self._closures = {}

    def names(self, path):
        if path not in self._names:
            self._names[path] = _Names(path)
        return self._names[path]

    def headers(self, path):
        """All headers of the tree that a file reads, by whatever way."""
        if path in self._closures:
            return self._closures[path]
        found = set()
        self._closures[path] = found  # For headers that include each other.
        for include in self.names(path).includes:
            header = os.path.join(self._root, include)
            if header not in found and os.path.isfile(header):
                found.add(header)
                found |= self.headers(header)
        return found


def _meets(tree, one, other, mine):
    """Whether a name that `one` has for itself is known to `other`."""
    names = tree.names(one).own - mine
    theirs = tree.names(other)
    if not names.isdisjoint(theirs.used):
        return True
    return any(not names.isdisjoint(tree.names(header).used)
               for header in tree.headers(other) - tree.headers(one))


def _group(tree, files, most, mine):
    """[(file, group)]: each into the first group that takes it."""
    groups = []
    placed = []
    for file in files:
        for number, group in enumerate(groups):
            if len(group) < most and not any(
                    _meets(tree, file, member, mine)
                    or _meets(tree, member, file, mine) for member in group):
                group.append(file)
                placed.append((file, number))
                break
        else:
            placed.append((file, len(groups)))
            groups.append([file])
    return placed


def main():
    root, most, own = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    tree = _Tree(root)
    mine = set(filter(None, own.split(',')))
    folders = {}
    for file in sys.argv[4:]:
        folders.setdefault(os.path.dirname(file), []).append(file)
    for folder, files in folders.items():
        prefix = os.path.relpath(folder, root).replace('/', '_')
        for file, number in _group(tree, files, most, mine):
            print(f'{file} {prefix}_{number}')


if __name__ == '__main__':
    main()
