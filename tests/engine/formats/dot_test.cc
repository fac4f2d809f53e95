#include "engine/formats/tensorflow/dot.h"

#include <gtest/gtest.h>

namespace optfarm::formats {
namespace {

TEST(DotTest, HasANodeAndItsInputsALineEach) {
  tensorflow::GraphDef graph;
  tensorflow::NodeDef* node = graph.add_node();
  node->set_name("x");
  node->set_op("Placeholder");
  node = graph.add_node();
  node->set_name("scope/y");
  node->set_op("Relu");
  node->add_input("x:1");
  node->add_input("^x");
  EXPECT_EQ(GraphToDot(graph),
            "digraph graphname {\n"
            "  \"x\" [label=\"Placeholder\"];\n"
            "  \"scope/y\" [label=\"Relu\"];\n"
            "  \"x\" -> \"scope/y\";\n"
            "  \"x\" -> \"scope/y\";\n"
            "}\n");
}

TEST(DotTest, NamesCannotBreakOutOfTheirQuotes) {
  tensorflow::GraphDef graph;
  tensorflow::NodeDef* node = graph.add_node();
  node->set_name("a\"]; b\\");
  node->set_op("line\nend");
  EXPECT_EQ(GraphToDot(graph),
            "digraph graphname {\n"
            "  \"a\\\"]; b\\\\\" [label=\"line\\nend\"];\n"
            "}\n");
}

}  // namespace
}  // namespace optfarm::formats
