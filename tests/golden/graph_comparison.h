// Comparing a graph of ours with one that TensorFlow's transform_graph wrote.
//
// Nodes are compared by name, op, inputs and attributes; float constants to
// 1e-6 of their largest value, quantized codes to one step. Not compared: node
// order, versions, `_output_shapes`, the counters in names of folded constants,
// and whether an attribute that has its default is written out. Where equal
// nodes were merged, it does not matter which of them kept its name:
// TensorFlow chooses by the order of its hash values.

#ifndef OPTFARM_TESTS_GOLDEN_GRAPH_COMPARISON_H_
#define OPTFARM_TESTS_GOLDEN_GRAPH_COMPARISON_H_

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/tensor_name.h"
#include "engine/runtime/core/tensor.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::testing {

struct NodeDifference {
  std::string node;
  std::string what;
};

class GraphComparison {
 public:
  GraphComparison(const tensorflow::GraphDef& ours,
                  const tensorflow::GraphDef& expected,
                  std::set<std::string> ignored_attributes)
      : ours_(Index(ours)),
        expected_(Index(expected)),
        ignored_(std::move(ignored_attributes)) {
    ignored_.insert("_output_shapes");
  }

  std::vector<NodeDifference> Run() {
    std::vector<NodeDifference> differences;
    std::vector<std::string> missing, extra;
    for (const auto& [name, node] : expected_) {
      if (!ours_.contains(name)) {
        missing.push_back(name);
      } else if (std::string what = Compare(name, name); !what.empty()) {
        differences.push_back({name, what});
      }
    }
    for (const auto& [name, node] : ours_) {
      if (!expected_.contains(name)) extra.push_back(name);
    }
    const auto alike = [this](const std::string& a, const std::string& b) {
      return Compare(a, b).empty();
    };
    for (const std::string& name : missing) {
      if (std::none_of(extra.begin(), extra.end(),
                       [&](const std::string& x) { return alike(x, name); })) {
        differences.push_back(
            {name, absl::StrCat("missing: ", expected_[name].op())});
      }
    }
    for (const std::string& name : extra) {
      if (std::none_of(missing.begin(), missing.end(),
                       [&](const std::string& x) { return alike(name, x); })) {
        differences.push_back(
            {name, absl::StrCat("extra: ", ours_[name].op())});
      }
    }
    return differences;
  }

 private:
  using Nodes = std::map<std::string, tensorflow::NodeDef>;

  // By name without counters, which also come off all inputs.
  static Nodes Index(const tensorflow::GraphDef& graph) {
    Nodes nodes;
    for (tensorflow::NodeDef node : graph.node()) {
      node.set_name(WithoutCounters(node.name()));
      for (std::string& input : *node.mutable_input()) {
        input = graph::ToString(
            graph::ParseTensorName(WithoutCounters(input)).value());
      }
      const std::string name = node.name();
      nodes[name] = std::move(node);
    }
    return nodes;
  }

  static std::string WithoutCounters(const std::string& name) {
    static const std::regex kCounters("/_[0-9]+__cf__[0-9]+");
    return std::regex_replace(name, kCounters, "/__cf__");
  }

  // What differs between a node of ours and an expected one; "" for nothing.
  std::string Compare(const std::string& our_name,
                      const std::string& expected_name) {
    const auto key = std::pair(our_name, expected_name);
    const auto [it, is_new] = compared_.emplace(key, "");
    if (!is_new) return it->second;
    const std::string what =
        CompareNodes(ours_[our_name], expected_[expected_name]);
    compared_[key] = what;
    return what;
  }

  std::string CompareNodes(const tensorflow::NodeDef& ours,
                           const tensorflow::NodeDef& expected) {
    if (ours.op() != expected.op()) {
      return absl::StrCat("op ", ours.op(), " instead of ", expected.op());
    }
    if (std::string what = CompareAttributes(ours, expected); !what.empty()) {
      return what;
    }
    if (!HaveSameInputs(ours, expected)) {
      return absl::StrCat("inputs (", absl::StrJoin(ours.input(), ", "),
                          ") instead of (",
                          absl::StrJoin(expected.input(), ", "), ")");
    }
    return "";
  }

  bool HaveSameInputs(const tensorflow::NodeDef& ours,
                      const tensorflow::NodeDef& expected) {
    if (ours.input_size() != expected.input_size()) return false;
    for (int i = 0; i < ours.input_size(); ++i) {
      const graph::TensorName a = graph::ParseTensorName(ours.input(i)).value();
      const graph::TensorName b =
          graph::ParseTensorName(expected.input(i)).value();
      if (a.port != b.port) return false;
      // Nodes of the same name are compared on their own.
      const bool is_same_name = a.node == b.node;
      if (!is_same_name && !Compare(a.node, b.node).empty()) return false;
    }
    return true;
  }

  std::string CompareAttributes(const tensorflow::NodeDef& ours,
                                const tensorflow::NodeDef& expected) {
    std::set<std::string> names;
    for (const auto& [name, value] : ours.attr()) names.insert(name);
    for (const auto& [name, value] : expected.attr()) names.insert(name);
    for (const std::string& name : names) {
      if (ignored_.contains(name)) continue;
      const tensorflow::AttrValue* a = ValueOf(ours, name);
      const tensorflow::AttrValue* b = ValueOf(expected, name);
      if (a == nullptr || b == nullptr) {
        return absl::StrCat("attribute ", name,
                            a == nullptr ? " missing" : " too many");
      }
      if (a->has_tensor() && b->has_tensor()) {
        std::string what = CompareTensors(a->tensor(), b->tensor());
        if (!what.empty()) return what;
      } else if (a->SerializeAsString() != b->SerializeAsString()) {
        return absl::StrCat("attribute ", name, " is ", a->ShortDebugString(),
                            " instead of ", b->ShortDebugString());
      }
    }
    return "";
  }

  static const tensorflow::AttrValue* ValueOf(const tensorflow::NodeDef& node,
                                              const std::string& name) {
    if (const auto it = node.attr().find(name); it != node.attr().end()) {
      return &it->second;
    }
    const tensorflow::OpDef* op_def = graph::FindOpDef(node.op());
    return op_def == nullptr ? nullptr
                             : graph::FindAttrOrDefault(*op_def, node, name);
  }

  static std::string CompareTensors(const tensorflow::TensorProto& ours,
                                    const tensorflow::TensorProto& expected) {
    const runtime::Tensor a = runtime::Tensor::FromProto(ours).value();
    const runtime::Tensor b = runtime::Tensor::FromProto(expected).value();
    if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) {
      return absl::StrCat("value ", a.DebugString(), " instead of ",
                          b.DebugString());
    }
    if (a.dtype() == tensorflow::DT_FLOAT) {
      float largest = 1e-30f, worst = 0;
      for (int64_t i = 0; i < a.num_elements(); ++i) {
        largest = std::max(largest, std::abs(b.flat<float>()[i]));
        worst =
            std::max(worst, std::abs(a.flat<float>()[i] - b.flat<float>()[i]));
      }
      return worst <= 1e-6f * largest
                 ? ""
                 : absl::StrCat("value differs by ", worst, " of ", largest);
    }
    if (a.dtype() == tensorflow::DT_QUINT8) {
      int worst = 0;
      for (int64_t i = 0; i < a.num_elements(); ++i) {
        worst = std::max(worst,
                         std::abs(a.flat<uint8_t>()[i] - b.flat<uint8_t>()[i]));
      }
      return worst <= 1 ? "" : absl::StrCat("codes differ by ", worst);
    }
    return a.ToProto().SerializeAsString() == b.ToProto().SerializeAsString()
               ? ""
               : absl::StrCat("value ", a.DebugString(), " instead of ",
                              b.DebugString());
  }

  Nodes ours_;
  Nodes expected_;
  std::set<std::string> ignored_;
  // By (our name, expected name); "" while the pair is being compared.
  std::map<std::pair<std::string, std::string>, std::string> compared_;
};

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_GOLDEN_GRAPH_COMPARISON_H_
