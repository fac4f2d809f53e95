#!/usr/bin/env python3
"""Checks every #include against the table in docs/architecture.md, which says
what each room may include of ours, against the places below, which say where
third parties may be seen, and against cycles: a header with its .cc file may
not include, through whatever others, itself.
"""

import pathlib
import re
import sys

from source_tree import SourceTree

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TABLE_ROW = re.compile(r'^\|([^|]+)\|([^|]+)\|$')
# Folders whose sources belong to no room.
ROOMLESS = ('tests', 'examples', 'cmake')
PROGRAM_ROOMS = ('server', 'worker', 'device_agent', 'client_cli')

# (headers, who they belong to, rooms that may include them, in headers too?)
THIRD_PARTIES = (
    (r'sqlite3(ext)?\.h$', 'SQLite', ('storage/sqlite',), False),
    (r'(curl/|expat)', 'libcurl or Expat', ('storage/s3',), False),
    (r'(libpq-fe|pg_config|libpq/.*)\.h$', 'libpq', ('storage/postgres',), False),
    (r'(unsupported/)?Eigen/', 'Eigen', ('engine',), False),
    (r'(gemmlowp/|public/gemmlowp|fixedpoint/)', 'gemmlowp',
     ('engine/runtime',), False),
    (r'boost/(asio|beast)', 'Boost.Asio or Beast', ('http',), False),
    (r'(grpcpp/|grpc/|grpc\+\+/|.*\.grpc\.pb\.h$)', 'gRPC',
     ('rpc', 'http') + PROGRAM_ROOMS, True),
    (r'prometheus/', 'prometheus-cpp', ('server',), False),
    (r'(jpeglib|turbojpeg|png|zlib|zstd)\.h$', 'a picture or compression library',
     ('engine', 'storage'), False),
    (r'(gif_lib|farmhash)\.h$|re2/', 'a library of the extra ops',
     ('engine/runtime',), False),
    (r'archive(_entry)?\.h$', 'libarchive', ('engine/formats',), False),
    (r'snappy\.h$', 'snappy', ('engine/formats',), False),
    (r'(flatbuffers/|tflite/schema_generated)', 'FlatBuffers',
     ('engine/formats/tflite',), False),
    (r'yaml-cpp/', 'yaml-cpp', ('engine/optimize',), False),
    (r'spdlog/', 'spdlog', ('base',), False),
    (r'openssl/', 'OpenSSL', ('base',), False),
    (r'nlohmann/', 'nlohmann-json', ('client_cli',), True),
    (r'CLI/', 'CLI11', ('rpc',) + PROGRAM_ROOMS, True),
)


def read_table(tree):
    """{room: set of rooms it may include} from the architecture page."""
    rows = {}
    page = tree.read('docs/architecture.md')
    start = page.index('| room | may include |')
    for line in page[start:].splitlines()[2:]:
        row = TABLE_ROW.match(line)
        if not row:
            break
        allowed = re.sub(r'\([^)]*\)', '', row.group(2)).split()
        for room in row.group(1).replace(',', ' ').split():
            rows[room] = set() if 'nothing' in allowed else set(allowed)

    def named(name, room):
        """The rooms that a name in the row of a room stands for: that room and
        those within it. Within an outer room, its name is for its own files."""
        folder = name.removesuffix('/*')
        if room.startswith(folder + '/'):
            return {folder}
        found = {other for other in rows if (other + '/').startswith(folder + '/')}
        if not found:
            tree.problem('docs/architecture.md',
                         f'{room} may include {name}, which is no room')
        return found

    return {room: set().union(*(named(name, room) for name in allowed | {room}))
                  - {room} for room, allowed in rows.items()}


def room_of(path, table):
    """The room that a path or an include belongs to, the innermost of several;
    None outside the rooms."""
    text = str(path)
    if text.startswith(('tensorflow/', 'optfarm/v1/', 'optfarm/servers/', 'onnx/',
                        'opentelemetry/')):
        return 'proto'
    rooms = [room for room in table if text.startswith(room + '/')]
    return max(rooms, key=len, default=None)


def inside(path, folders):
    return any(str(path).startswith(folder + '/') for folder in folders)


def check_own(tree, table, path, number, target):
    room, wanted = room_of(path, table), room_of(target, table)
    if wanted is None:
        if target.startswith('tests/') and inside(path, ('tests',)):
            wanted = 'tests'
        elif target.startswith('engine/'):
            tree.problem(f'{path}:{number}', f'"{target}" is in no room')
            return
        else:
            return
    if wanted != 'proto' and not (tree.root / target).exists():
        tree.problem(f'{path}:{number}', f'there is no "{target}"')
    if room and wanted != room and wanted not in table[room]:
        tree.problem(f'{path}:{number}', f'{room} may not include {wanted} '
                     f'("{target}"); see docs/architecture.md')


def check_third_party(tree, path, number, target):
    for pattern, owner, rooms, headers_too in THIRD_PARTIES:
        if not re.match(pattern, target) or inside(path, ('tests',)):
            continue
        if not inside(path, rooms):
            tree.problem(f'{path}:{number}',
                         f'{owner} ({target}) stays in {", ".join(rooms)}')
        elif path.suffix == '.h' and not headers_too:
            tree.problem(f'{path}:{number}',
                         f'{owner} ({target}) stays out of headers')


def check_table(tree, table):
    """Every source file is in a room of the table, and the table has no cycle
    but of a room with those within it, whose files check_cycles looks at."""
    for room, allowed in table.items():
        for other in allowed:
            if room in table[other] and not inside(room, (other,)) \
                    and not inside(other, (room,)):
                tree.problem('docs/architecture.md',
                             f'{room} and {other} may include each other')
    for path in tree.files('.h', '.cc'):
        folder, room = path.parent.as_posix(), room_of(path, table)
        # A crowded room has rooms within it, and each of them a line.
        is_crowded = room and any(inside(other, (room,)) for other in table)
        if path.parts[0] not in ROOMLESS and (
                not room or (is_crowded and room != folder)):
            tree.problem(path, f'{folder} has no line in the include table')


def unit_of(path):
    """A header and the .cc file of its name are one unit."""
    return str(pathlib.PurePosixPath(path).with_suffix(''))


def find_cycles(needs):
    """The groups of units each of which needs all others, by Tarjan."""
    order, lowest, stack, cycles = {}, {}, [], []

    def visit(unit):
        order[unit] = lowest[unit] = len(order)
        stack.append(unit)
        for other in sorted(needs[unit]):
            if other not in order:
                visit(other)
                lowest[unit] = min(lowest[unit], lowest[other])
            elif other in stack:
                lowest[unit] = min(lowest[unit], order[other])
        if lowest[unit] == order[unit]:
            start = stack.index(unit)
            if len(stack) > start + 1:
                cycles.append(sorted(stack[start:]))
            del stack[start:]

    sys.setrecursionlimit(10000)
    for unit in sorted(needs):
        if unit not in order:
            visit(unit)
    return cycles


def check_cycles(tree, includes):
    needs = {unit_of(path): set() for path, _ in includes}
    for path, target in includes:
        if unit_of(target) in needs and unit_of(path) != unit_of(target):
            needs[unit_of(path)].add(unit_of(target))
    for cycle in find_cycles(needs):
        for unit in cycle:
            others = sorted(needs[unit] & set(cycle))
            tree.problem(unit, f'in a cycle of includes by {", ".join(others)}')


def main():
    tree = SourceTree()
    includes = []
    table = read_table(tree)
    check_table(tree, table)
    for path in tree.files('.h', '.cc'):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            include = INCLUDE.match(line)
            if not include:
                continue
            target = include.group(2)
            if '..' in pathlib.PurePosixPath(target).parts:
                tree.problem(f'{path}:{number}',
                             f'"{target}" does not start at the root')
            if include.group(1) == '"':
                includes.append((path, target))
                check_own(tree, table, path, number, target)
            check_third_party(tree, path, number, target)
    check_cycles(tree, includes)
    tree.finish()


if __name__ == '__main__':
    main()
