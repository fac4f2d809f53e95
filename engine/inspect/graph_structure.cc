#include "engine/inspect/graph_structure.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/op_table.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::inspect {
namespace {

using tensorflow::NodeDef;

constexpr int64_t kValuesShown = 3;

// The shortest of TensorFlow's precisions that reads back as the same number.
std::string FloatText(float value) {
  for (const int digits : {6, 8}) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    if (std::strtof(text.c_str(), nullptr) == value) return text;
  }
  return absl::StrFormat("%.9g", value);
}

std::string DoubleText(double value) {
  const std::string text = absl::StrFormat("%.15g", value);
  if (std::strtod(text.c_str(), nullptr) == value) return text;
  return absl::StrFormat("%.17g", value);
}

template <typename T>
std::vector<std::string> NumberTexts(const T* values, int64_t count) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      texts.push_back(FloatText(values[i]));
    } else if constexpr (std::is_same_v<T, double>) {
      texts.push_back(DoubleText(values[i]));
    } else if constexpr (std::is_same_v<T, std::string>) {
      texts.push_back(absl::CEscape(values[i]));
    } else {
      texts.push_back(absl::StrCat(values[i]));
    }
  }
  return texts;
}

// The first values, each as text; "?" where the type has no text.
std::vector<std::string> FirstValues(const runtime::Tensor& tensor) {
  const int64_t count = std::min(kValuesShown, tensor.shape().num_elements());
  switch (tensor.dtype()) {
#define OPTFARM_CASE(dtype) \
  case tensorflow::dtype:   \
    return NumberTexts(     \
        tensor.data<runtime::ElementOf<tensorflow::dtype>::Type>(), count)
    OPTFARM_CASE(DT_FLOAT);
    OPTFARM_CASE(DT_DOUBLE);
    OPTFARM_CASE(DT_INT32);
    OPTFARM_CASE(DT_QINT32);
    OPTFARM_CASE(DT_UINT32);
    OPTFARM_CASE(DT_INT64);
    OPTFARM_CASE(DT_UINT64);
    OPTFARM_CASE(DT_STRING);
    OPTFARM_CASE(DT_INT16);
    OPTFARM_CASE(DT_QINT16);
    OPTFARM_CASE(DT_UINT16);
    OPTFARM_CASE(DT_QUINT16);
    OPTFARM_CASE(DT_INT8);
    OPTFARM_CASE(DT_QINT8);
    OPTFARM_CASE(DT_UINT8);
    OPTFARM_CASE(DT_QUINT8);
    OPTFARM_CASE(DT_BOOL);
#undef OPTFARM_CASE
    default:
      return std::vector<std::string>(count, "?");
  }
}

ConstantPreview PreviewOf(const NodeDef& node) {
  ConstantPreview preview;
  const auto proto = graph::GetTensor(node, "value");
  if (!proto.ok()) {
    preview.problem = "none";
    return preview;
  }
  const auto tensor = runtime::Tensor::FromProto(**proto);
  if (!tensor.ok()) {
    preview.problem = std::string(tensor.status().message());
    return preview;
  }
  preview.dtype = tensor->dtype();
  preview.shape = tensor->shape();
  preview.first_values = FirstValues(*tensor);
  return preview;
}

}  // namespace

absl::StatusOr<std::vector<StructureNode>> ListGraphStructure(
    const tensorflow::GraphDef& graph) {
  absl::flat_hash_map<absl::string_view, const NodeDef*> nodes;
  for (const NodeDef& node : graph.node()) nodes[node.name()] = &node;
  OPTFARM_ASSIGN_OR_RETURN(const graph::Graph indexed,
                           graph::Graph::FromDef(graph));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<graph::NodeId> order,
                           graph::ExecutionOrder(indexed));
  std::vector<StructureNode> structure;
  for (const graph::NodeId id : order) {
    const NodeDef& node = *nodes[indexed.node(id).name()];
    StructureNode& entry = structure.emplace_back();
    entry.name = node.name();
    entry.op = node.op();
    entry.inputs.assign(node.input().begin(), node.input().end());
    if (graph::IsConst(node.op())) entry.constant = PreviewOf(node);
  }
  return structure;
}

}  // namespace optfarm::inspect
