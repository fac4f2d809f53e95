#include "engine/inspect/graph_difference.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>

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

// The first difference of two nodes of one name.
std::optional<std::string> InputDifference(const NodeDef& a, const NodeDef& b) {
  const Inputs first = InputsOf(a), second = InputsOf(b);
  if (first.data.size() != second.data.size()) {
    return absl::StrCat("has ", first.data.size(),
                        " inputs in the first graph and ", second.data.size(),
                        " in the second");
  }
  for (size_t i = 0; i < first.data.size(); ++i) {
    if (first.data[i] == second.data[i]) continue;
    return absl::StrCat("has input ", i, " '", first.data[i],
                        "' in the first graph and '", second.data[i],
                        "' in the second");
  }
  if (first.control == second.control) return std::nullopt;
  return absl::StrCat("has control inputs [",
                      absl::StrJoin(first.control, ", "),
                      "] in the first graph and [",
                      absl::StrJoin(second.control, ", "), "] in the second");
}

std::optional<std::string> AttrDifference(const NodeDef& a, const NodeDef& b) {
  const auto first = AttrsOf(a), second = AttrsOf(b);
  for (const auto& [name, value] : first) {
    const auto found = second.find(name);
    if (found == second.end()) {
      return absl::StrCat("has attribute '", name,
                          "' only in the first graph, with ", Shown(*value));
    }
    if (!SameValues(*value, *found->second)) {
      return absl::StrCat("has attribute '", name, "' ", Shown(*value),
                          " in the first graph and ", Shown(*found->second),
                          " in the second");
    }
  }
  for (const auto& [name, value] : second) {
    if (first.contains(name)) continue;
    return absl::StrCat("has attribute '", name,
                        "' only in the second graph, with ", Shown(*value));
  }
  return std::nullopt;
}

std::optional<std::string> NodeDifference(const NodeDef& a, const NodeDef& b) {
  const auto both = [](absl::string_view what, const std::string& first,
                       const std::string& second) {
    return absl::StrCat("has ", what, " '", first, "' in the first graph and '",
                        second, "' in the second");
  };
  if (a.op() != b.op()) return both("op", a.op(), b.op());
  if (a.device() != b.device()) return both("device", a.device(), b.device());
  if (auto difference = InputDifference(a, b)) return difference;
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

std::vector<std::string> FindGraphDifferences(
    const tensorflow::GraphDef& first, const tensorflow::GraphDef& second,
    size_t most) {
  const auto in_first = ByName(first), in_second = ByName(second);
  std::vector<std::string> differences;
  for (const NodeDef& node : first.node()) {
    if (differences.size() >= most) return differences;
    const auto found = in_second.find(node.name());
    if (found == in_second.end()) {
      differences.push_back(
          absl::StrCat("Node '", node.name(), "' is only in the first graph"));
    } else if (const auto difference = NodeDifference(node, *found->second)) {
      differences.push_back(
          absl::StrCat("Node '", node.name(), "' ", *difference));
    }
  }
  for (const NodeDef& node : second.node()) {
    if (differences.size() >= most) return differences;
    if (in_first.contains(node.name())) continue;
    differences.push_back(
        absl::StrCat("Node '", node.name(), "' is only in the second graph"));
  }
  return differences;
}

}  // namespace optfarm::inspect
