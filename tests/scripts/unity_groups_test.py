"""Which files cmake/unity_groups.py compiles together."""

import os
import subprocess
import sys
import tempfile
import unittest

_ROOT = os.path.join(os.path.dirname(__file__), '../..')
_SCRIPT = os.path.join(_ROOT, 'cmake/unity_groups.py')


class UnityGroupsTest(unittest.TestCase):

    def groups(self, files, most=8, own=''):
        """The groups that files, {name: text}, are put into, each a list."""
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, 'room'))
            paths = []
            for name, text in files.items():
                path = os.path.join(folder, 'room', name)
                with open(path, 'w', encoding='utf-8') as file:
                    file.write(text)
                if name.endswith('.cc'):
                    paths.append(path)
            printed = subprocess.run(
                [sys.executable, _SCRIPT, folder,
                 str(most), own, *paths],
                check=True,
                capture_output=True,
                text=True).stdout
        groups = {}
        for line in printed.splitlines():
            path, group = line.split(' ')
            self.assertTrue(group.startswith('room_'), line)
            groups.setdefault(group, []).append(os.path.basename(path))
        return list(groups.values())

    def assert_apart(self, one, other, **headers):
        files = {'a.cc': one, 'b.cc': other}
        files.update({name + '.h': text for name, text in headers.items()})
        self.assertEqual(self.groups(files), [['a.cc'], ['b.cc']])

    def assert_together(self, one, other, **headers):
        files = {'a.cc': one, 'b.cc': other}
        files.update({name + '.h': text for name, text in headers.items()})
        self.assertEqual(self.groups(files), [['a.cc', 'b.cc']])

    def test_files_with_different_helpers_are_one_group(self):
        self.assert_together('namespace { int One() { return 1; } }',
                             'namespace { int Two() { return 2; } }')

    def test_helpers_of_one_name_are_apart(self):
        helper = 'namespace o { namespace { %s } }'
        for text in (
                'int Read(int at = 0) { return at; }',
                'template <typename T, int n = (1 > 0)> T Read() { return n; }',
                'class Read final : public Base {};', 'enum class Read { kA };',
                'using Read = int;', 'constexpr char Read[] = "}";',
                "const int Read = 1'000;",
                'MATCHER_P(Read, x, "") { return 1; }'):
            with self.subTest(text):
                self.assert_apart(helper % text,
                                  helper % 'double Read() { return 0; }')

    def test_what_only_looks_like_the_name_is_nothing(self):
        helper = 'namespace { int Read() { return 1; } }\n'
        self.assert_together(helper, '// Read\nconst char* k = "Read()";')
        self.assert_together(helper,
                             'int F(const File& f) { return f.Read(); }')

    def test_a_use_of_another_thing_of_the_name_is_apart(self):
        self.assert_apart('namespace { int Read() { return 1; } }',
                          'int Two() { return Read(); }')

    def test_macros_and_constants_of_a_namespace_are_a_files_own(self):
        self.assert_apart('#define BOTH(x) x\n', '#define BOTH(x) (x)\n')
        self.assert_apart('namespace o {\nconst int kNow = 1;\n}',
                          'namespace o {\nconst int kNow = 2;\n}')

    def test_a_name_in_a_header_that_the_other_file_reads_is_apart(self):
        self.assert_apart('namespace { int Read() { return 1; } }',
                          '#include "room/outer.h"\n',
                          outer='#include "room/inner.h"\n',
                          inner='#include "room/outer.h"\nint Read();\n')

    def test_functions_for_others_may_be_used_by_them(self):
        self.assert_together(
            '#include "room/read.h"\nint Read() { return 1; }',
            '#include "room/read.h"\nint F() { return Read(); }',
            read='int Read();\n')

    def test_no_group_is_larger_than_said(self):
        files = {f'{name}.cc': f'int {name}1;' for name in 'abcde'}
        self.assertEqual(self.groups(files, most=2),
                         [['a.cc', 'b.cc'], ['c.cc', 'd.cc'], ['e.cc']])

    def test_names_that_each_file_gets_as_its_own_do_not_count(self):
        rows = 'namespace { constexpr int kRows[] = {1}; }'
        files = {'a.cc': rows, 'b.cc': rows}
        self.assertEqual(len(self.groups(files)), 2)
        self.assertEqual(len(self.groups(files, own='kRows,kOther')), 1)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
