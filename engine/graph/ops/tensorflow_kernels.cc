#include "engine/graph/ops/tensorflow_kernels.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/tensorflow_kernel_table.h"

namespace optfarm::graph {
namespace {

using tensorflow::DataType;

// TensorFlow's C++ name of a dtype.
std::string CppType(DataType dtype, bool with_namespace) {
  const absl::string_view space = with_namespace ? "::tensorflow::" : "";
  switch (dtype) {
    case tensorflow::DT_HALF:
      return "Eigen::half";
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_DOUBLE:
    case tensorflow::DT_BOOL:
    case tensorflow::DT_STRING:
      return DataTypeName(dtype);
    case tensorflow::DT_RESOURCE:
      return absl::StrCat(space, "ResourceHandle");
    case tensorflow::DT_VARIANT:
      return absl::StrCat(space, "Variant");
    default:
      return absl::StrCat(space, DataTypeName(dtype));
  }
}

std::optional<DataType> TypeOf(const tensorflow::NodeDef& node,
                               const std::string& name) {
  const tensorflow::OpDef* op_def = FindOpDef(node.op());
  const tensorflow::AttrValue* attr =
      op_def == nullptr ? FindAttr(node, name)
                        : FindAttrOrDefault(*op_def, node, name);
  if (attr == nullptr || attr->type() == tensorflow::DT_INVALID) {
    return std::nullopt;
  }
  return BaseType(attr->type());
}

// `spelling` with the node's types in place; nullopt when one is missing.
std::optional<std::string> Fill(absl::string_view spelling,
                                const tensorflow::NodeDef& node) {
  std::string filled;
  while (!spelling.empty()) {
    const size_t mark = spelling.find_first_of("$%");
    absl::StrAppend(&filled, spelling.substr(0, mark));
    if (mark == absl::string_view::npos) break;
    size_t end = mark + 1;
    while (end < spelling.size() &&
           (absl::ascii_isalnum(spelling[end]) || spelling[end] == '_')) {
      ++end;
    }
    const auto type =
        TypeOf(node, std::string(spelling.substr(mark + 1, end - mark - 1)));
    if (!type.has_value()) return std::nullopt;
    filled += CppType(*type, spelling[mark] == '%');
    spelling.remove_prefix(end);
  }
  return filled;
}

bool TakesTypes(const KernelClass& kernel, const tensorflow::NodeDef& node) {
  if (kernel.types[0] == '\0') return true;
  const std::optional<DataType> type = TypeOf(node, "T");
  return type.has_value() &&
         absl::c_linear_search(
             std::vector<std::string>(absl::StrSplit(kernel.types, ' ')),
             DataTypeName(*type));
}

}  // namespace

std::vector<std::string> TensorFlowKernelClasses(
    const tensorflow::NodeDef& node) {
  std::vector<std::string> classes;
  for (const KernelClass& kernel : TensorFlowKernelTable()) {
    if (kernel.op != node.op() || !TakesTypes(kernel, node)) continue;
    for (absl::string_view spelling : absl::StrSplit(kernel.spellings, '|')) {
      if (auto filled = Fill(spelling, node)) {
        classes.push_back(*std::move(filled));
      }
    }
  }
  return classes;
}

}  // namespace optfarm::graph
