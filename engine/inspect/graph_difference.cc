#include "engine/inspect/graph_difference.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::inspect {
namespace {

using tensorflow::AttrValue;
using tensorflow::NodeDef;

// Longer values are not quoted in a difference.
constexpr size_t kMostTextShown = 80;

std::string Bytes(const google::protobuf::Message& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  return bytes;
}

bool SameTensors(const runtime::Tensor& a, const runtime::Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  const int64_t count = a.shape().num_elements();
  if (a.dtype() == tensorflow::DT_STRING) {
    const std::string* first = a.data<std::string>();
    return std::equal(first, first + count, b.data<std::string>());
  }
  return count == 0 ||
         std::memcmp(a.raw(), b.raw(),
                     count * runtime::ElementSize(a.dtype())) == 0;
}

bool SameValues(const AttrValue& a, const AttrValue& b) {
  if (Bytes(a) == Bytes(b)) return true;
  if (!a.has_tensor() || !b.has_tensor()) return false;
  // The same tensor may be stored in several ways.
  const auto first = runtime::Tensor::FromProto(a.tensor());
  const auto second = runtime::Tensor::FromProto(b.tensor());
  return first.ok() && second.ok() && SameTensors(*first, *second);
}

std::string Shown(const AttrValue& value) {
  std::string text = value.ShortDebugString();
  if (text.size() > kMostTextShown) {
    text = absl::StrCat(text.substr(0, kMostTextShown), "...");
  }
  return text;
}

struct Inputs {
  std::vector<std::string> data;
  std::set<std::string> control;
};

Inputs InputsOf(const NodeDef& node) {
  Inputs inputs;
  for (const std::string& input : node.input()) {
    if (absl::StartsWith(input, "^")) {
      inputs.control.insert(input);
    } else {
      inputs.data.emplace_back(absl::StripSuffix(input, ":0"));
    }
  }
  return inputs;
}

std::map<std::string, const AttrValue*> AttrsOf(const NodeDef& node) {
  std::map<std::string, const AttrValue*> attrs;
  for (const auto& [name, value] : node.attr()) {
    if (!absl::StartsWith(name, "_")) attrs[name] = &value;
  }
  return attrs;
}

using Kind = NodeDifference::Kind;

NodeDifference Difference(Kind kind, std::string first, std::string second) {
  NodeDifference difference;
  difference.kind = kind;
  difference.first = std::move(first);
  difference.second = std::move(second);
  return difference;
}

std::optional<NodeDifference> InputDifference(const NodeDef& a,
                                              const NodeDef& b) {
  const Inputs first = InputsOf(a), second = InputsOf(b);
  if (first.data.size() != second.data.size()) {
    return Difference(Kind::kInputCount, absl::StrCat(first.data.size()),
                      absl::StrCat(second.data.size()));
  }
  for (size_t i = 0; i < first.data.size(); ++i) {
    if (first.data[i] == second.data[i]) continue;
    NodeDifference difference =
        Difference(Kind::kInput, first.data[i], second.data[i]);
    difference.input = i;
    return difference;
  }
  if (first.control == second.control) return std::nullopt;
  return Difference(Kind::kControlInputs, absl::StrJoin(first.control, ", "),
                    absl::StrJoin(second.control, ", "));
}

std::optional<NodeDifference> AttrDifference(const NodeDef& a,
                                             const NodeDef& b) {
  const auto first = AttrsOf(a), second = AttrsOf(b);
  NodeDifference difference;
  difference.kind = Kind::kAttribute;
  for (const auto& [name, value] : first) {
    const auto found = second.find(name);
    if (found != second.end() && SameValues(*value, *found->second)) continue;
    difference.attribute = name;
    difference.first = Shown(*value);
    if (found != second.end()) difference.second = Shown(*found->second);
    return difference;
  }
  for (const auto& [name, value] : second) {
    if (first.contains(name)) continue;
    difference.attribute = name;
    difference.second = Shown(*value);
    return difference;
  }
  return std::nullopt;
}

std::optional<NodeDifference> DifferenceOf(const NodeDef& a, const NodeDef& b) {
  if (a.op() != b.op()) return Difference(Kind::kOp, a.op(), b.op());
  if (a.device() != b.device()) {
    return Difference(Kind::kDevice, a.device(), b.device());
  }
  if (auto input = InputDifference(a, b)) return input;
  return AttrDifference(a, b);
}

absl::flat_hash_map<absl::string_view, const NodeDef*> ByName(
    const tensorflow::GraphDef& graph) {
  absl::flat_hash_map<absl::string_view, const NodeDef*> nodes;
  for (const NodeDef& node : graph.node())
    nodes.try_emplace(node.name(), &node);
  return nodes;
}

}  // namespace

std::vector<NodeDifference> FindGraphDifferences(
    const tensorflow::GraphDef& first, const tensorflow::GraphDef& second,
    size_t most) {
  const auto in_first = ByName(first), in_second = ByName(second);
  std::vector<NodeDifference> differences;
  for (const NodeDef& node : first.node()) {
    if (differences.size() >= most) return differences;
    const auto found = in_second.find(node.name());
    std::optional<NodeDifference> difference;
    if (found == in_second.end()) {
      difference.emplace().first = node.name();
    } else {
      difference = DifferenceOf(node, *found->second);
    }
    if (!difference) continue;
    difference->node = node.name();
    differences.push_back(*std::move(difference));
  }
  for (const NodeDef& node : second.node()) {
    if (differences.size() >= most) return differences;
    if (in_first.contains(node.name())) continue;
    NodeDifference& difference = differences.emplace_back();
    difference.node = node.name();
    difference.second = node.name();
  }
  return differences;
}

}  // namespace optfarm::inspect
