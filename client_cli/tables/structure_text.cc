#include "client_cli/tables/structure_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/graph/attr.h"

namespace optfarm::client_cli {
namespace {

// `texts` with brackets around each row that they come from, as far as they go:
// "[[1 2][3]]" of a 2x2x2 tensor. A tensor of one dimension has none.
std::string InBrackets(const std::vector<std::string>& texts,
                       const runtime::Shape& shape) {
  std::string text;
  for (size_t i = 0; i < texts.size(); ++i) {
    int64_t row = 1;
    std::string opened, closed;
    for (int axis = shape.rank() - 1; axis > 0; --axis) {
      row *= shape.dim(axis);
      if (static_cast<int64_t>(i) % row == 0) opened += '[';
      if (static_cast<int64_t>(i) % row == row - 1 || i + 1 == texts.size()) {
        closed += ']';
      }
    }
    absl::StrAppend(&text, opened.empty() && i > 0 ? " " : "", opened, texts[i],
                    closed);
  }
  return text;
}

std::string ConstantText(const inspect::ConstantPreview& constant) {
  if (!constant.problem.empty()) {
    return absl::StrCat(", value=(", constant.problem, ")");
  }
  const auto shown = static_cast<int64_t>(constant.first_values.size());
  return absl::StrCat(
      ", value=Tensor<type: ", graph::DataTypeName(constant.dtype),
      " shape: ", constant.shape.ToString(),
      " values: ", InBrackets(constant.first_values, constant.shape),
      constant.shape.num_elements() > shown ? "..." : "", ">");
}

}  // namespace

std::vector<std::string> StructureLines(
    const std::vector<inspect::StructureNode>& structure) {
  std::vector<std::string> lines;
  for (const inspect::StructureNode& node : structure) {
    lines.push_back(absl::StrCat(
        node.name, " (", node.op, "): [", absl::StrJoin(node.inputs, ", "), "]",
        node.constant ? ConstantText(*node.constant) : ""));
  }
  return lines;
}

}  // namespace optfarm::client_cli
