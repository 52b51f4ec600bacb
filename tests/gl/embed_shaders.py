# SPDX-License-Identifier: Apache-2.0
# Copyright The LORaster authors
"""The embedding tool: usage embed_shaders.py TOOL VALIDATOR."""
import os, subprocess, sys, tempfile, unittest

TOOL, VALIDATOR = sys.argv[1:3]
SHADERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shaders")


def run(root, *names):
    """Exit status, messages and the C file's text ('' when there is none)."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "table.c")
        done = subprocess.run([sys.executable, TOOL, "--validator", VALIDATOR, "--output", output, "--root", root,
                               *(os.path.join(root, name) for name in names)], capture_output=True, text=True,
                              check=False)
        text = ""
        if os.path.exists(output):
            with open(output, encoding="utf-8") as stream:
                text = stream.read()
        return done.returncode, done.stderr, text


class Embedding(unittest.TestCase):
    def test_an_empty_list_gives_an_empty_table(self):
        status, _, text = run(SHADERS)
        self.assertEqual(status, 0)
        self.assertIn("{NULL, NULL, NULL}", text)

    def test_order_does_not_matter(self):
        first = run(SHADERS, "cover.vert", "colour.frag", "scale.comp")
        second = run(SHADERS, "scale.comp", "colour.frag", "cover.vert")
        self.assertEqual(first, second)
        self.assertEqual(first[0], 0, first[1])
        self.assertIn('{"colour.frag", "common/numbers.h", "common/block.glsl", NULL}',
                      first[2].replace("files_0[] = ", ""))

    def test_errors_name_the_included_file_and_line(self):
        status, messages, text = run(SHADERS, "broken_include.frag", "broken.frag")
        self.assertEqual((status, text), (1, ""))
        self.assertIn("common/broken.glsl:5: error: ", messages)
        self.assertIn("broken.frag:9: error: ", messages)
        self.assertIn("value = nonsense;", messages)

    def test_lost_includes_name_the_line_that_asks(self):
        status, messages, _ = run(SHADERS, "lost_include.frag")
        self.assertEqual(status, 1)
        self.assertIn("lost_include.frag:4: ", messages)

    def test_every_variant_is_validated(self):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "a.comp"), "w", encoding="utf-8") as stream:
                stream.write("#version 450 core\n// variants: GOOD=1; BAD=2 OTHER\n" "layout(local_size_x = 1) in;\n"
                             "#if defined(BAD) && BAD == 2 && OTHER == 1\nnonsense\n#endif\n" "void main() {}\n")
            status, messages, _ = run(root, "a.comp")
        self.assertEqual(status, 1)
        self.assertIn("a.comp is not valid with BAD=2 OTHER=1", messages)
        self.assertRegex(messages, r"a\.comp:[57]: error: ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
