#!/usr/bin/env python3
"""Checks that the engine asks for an op's role, not for its name, where its row
gives it one (engine/graph/ops/op_row.h), and that data_format and padding are
read in engine/graph/spatial_attrs.cc alone. A name that is compared in many
places is misspelled in one of them, and a new version of the op is forgotten
in another.
"""

import re

from source_tree import SourceTree

ROWS = re.compile(r'\{\.names = ((?:"[^"]*"\s*)+),(.*?)(?=\n    \{\.names|\n\};)',
                  re.DOTALL)
COMPARED = re.compile(r'[=!]=\s*"(\w+)"|"(\w+)"\s*[=!]=')
SPATIAL = {'NHWC', 'NCHW', 'NDHWC', 'NCDHW', 'NCHW_VECT_C', 'SAME', 'VALID',
           'EXPLICIT'}
# Where one op of its role is meant and no other.
MEANT = {
    # TensorFlow's rules for files of before shapes of placeholders.
    ('engine/graph/shapes/shape_functions_array.cc', 'Placeholder'),
    # A reference comes in as one.
    ('engine/runtime/plan/planner.cc', 'RefEnter'),
    # They rewrite this op as TensorFlow's transforms of this name do.
    ('engine/transforms/cleanup/backport_concatv2.cc', 'ConcatV2'),
    ('engine/transforms/cleanup/strip_unused_nodes.cc', 'Placeholder'),
    ('engine/transforms/quantizing/quantize_placeholders.cc', 'Placeholder'),
    # Not of references, which a branch may change.
    ('engine/transforms/cleanup/dead_branches.cc', 'Enter'),
    ('engine/transforms/cleanup/dead_branches.cc', 'Switch'),
    # Of variables that are references.
    ('engine/transforms/cleanup/remove_ema.cc', 'Assign'),
    ('engine/transforms/nodes/saved_variables.cc', 'Assign'),
    # ONNX's attribute auto_pad, and names of ONNX's ops.
    ('engine/formats/onnx/windows.cc', 'VALID'),
}


def names_with_role(tree):
    names = set()
    for path in tree.files('.cc'):
        if path.parts[:3] != ('engine', 'graph', 'ops'):
            continue
        for row in ROWS.finditer(tree.read(path)):
            if '.role = OpRole::' in row.group(2):
                text = ''.join(re.findall(r'"([^"]*)"', row.group(1)))
                names.update(name.strip() for name in text.split(','))
    return names


def check_comparisons(tree, names):
    used = set()
    for path in tree.files('.h', '.cc'):
        if path.parts[0] != 'engine':
            continue
        code = re.sub(r'//[^\n]*', '', tree.read(path))
        for match in COMPARED.finditer(code):
            name = match.group(1) or match.group(2)
            if name not in names and name not in SPATIAL:
                continue
            if (str(path), name) in MEANT:
                used.add((str(path), name))
                continue
            line = code.count('\n', 0, match.start()) + 1
            instead = ('spatial_attrs.h reads it' if name in SPATIAL else
                       'its row has a role; ask op_table.h for that')
            tree.problem(f'{path}:{line}', f'compares with "{name}": {instead}')
    for path, name in sorted(MEANT - used):
        tree.problem('tests/lint/op_names_lint.py',
                     f'lists {path} with {name}, which does not compare it')


def main():
    tree = SourceTree()
    names = names_with_role(tree)
    if len(names) < 50:
        tree.problem('tests/lint/op_names_lint.py',
                     f'finds only {len(names)} ops with a role; '
                     'has the form of rows changed?')
    check_comparisons(tree, names)
    tree.finish()


if __name__ == '__main__':
    main()
