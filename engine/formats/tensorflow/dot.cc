#include "engine/formats/tensorflow/dot.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace optfarm::formats {
namespace {

std::string Quoted(absl::string_view name) {
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(
          name, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}, {"\r", "\\r"}}),
      "\"");
}

// The node that an input string reads, whatever its prefix and port.
std::string InputNode(const std::string& input) {
  const size_t start = absl::StartsWith(input, "^") ? 1 : 0;
  return input.substr(start, input.find(':', start) - start);
}

}  // namespace

std::string GraphToDot(const tensorflow::GraphDef& graph) {
  std::string text = "digraph graphname {\n";
  for (const tensorflow::NodeDef& node : graph.node()) {
    const std::string name = Quoted(node.name());
    absl::StrAppend(&text, "  ", name, " [label=", Quoted(node.op()), "];\n");
    for (const std::string& input : node.input()) {
      absl::StrAppend(&text, "  ", Quoted(InputNode(input)), " -> ", name,
                      ";\n");
    }
  }
  return absl::StrCat(text, "}\n");
}

}  // namespace optfarm::formats
