// What the tests of this room share: applying a transform string to a graph,
// reading the result, and running it.

#ifndef OPTFARM_TESTS_ENGINE_TRANSFORMS_TRANSFORM_TESTING_H_
#define OPTFARM_TESTS_ENGINE_TRANSFORMS_TRANSFORM_TESTING_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/runtime/session/session.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"
#include "engine/transforms/nodes/constant_nodes.h"
#include "tests/support/graph_builder.h"
#include "tests/support/status_matchers.h"

namespace optfarm::transforms::testing {

using namespace optfarm::testing;  // NOLINT: the tests' own vocabulary
using graph::Graph;
using runtime::Tensor;

// `inputs` and `outputs` are lists with commas.
inline absl::StatusOr<PipelineReport> Apply(Graph* graph,
                                            const std::string& transforms,
                                            const std::string& inputs,
                                            const std::string& outputs,
                                            PipelineOptions options = {}) {
  static FakeClock clock(absl::UnixEpoch());
  options.clock = &clock;
  OPTFARM_ASSIGN_OR_RETURN(const auto steps, ParseTransforms(transforms));
  OPTFARM_ASSIGN_OR_RETURN(const auto input_names,
                           graph::ParseTensorNames(inputs));
  OPTFARM_ASSIGN_OR_RETURN(const auto output_names,
                           graph::ParseTensorNames(outputs));
  return RunTransforms(graph, steps, input_names, output_names, options);
}

// The report of the last step; the test fails when there is none.
inline TransformReport MustApply(Graph* graph, const std::string& transforms,
                                 const std::string& inputs,
                                 const std::string& outputs) {
  const absl::StatusOr<PipelineReport> report =
      Apply(graph, transforms, inputs, outputs);
  EXPECT_TRUE(report.ok()) << report.status();
  if (!report.ok() || report->steps.empty()) return {};
  EXPECT_TRUE(report->steps.back().ignored_error.ok())
      << report->steps.back().ignored_error;
  return report->steps.back().report;
}

// In file order.
inline std::vector<std::string> Names(const Graph& graph) {
  std::vector<std::string> names;
  for (graph::NodeId id : graph.Ids()) names.push_back(graph.node(id).name());
  return names;
}

inline std::vector<std::string> SortedNames(const Graph& graph) {
  std::vector<std::string> names = Names(graph);
  std::sort(names.begin(), names.end());
  return names;
}

// "Op(input, input:1, ^control)"; "none" for a node that is not there.
inline std::string Show(const Graph& graph, const std::string& name) {
  const graph::NodeId id = graph.Find(name);
  if (id == graph::kNoNode) return "none";
  const graph::Node& node = graph.node(id);
  std::vector<std::string> inputs;
  for (const graph::Endpoint& e : node.inputs()) {
    inputs.push_back(graph.NameOf(e));
  }
  for (graph::NodeId control : node.control_inputs()) {
    inputs.push_back("^" + graph.node(control).name());
  }
  return node.op() + "(" + absl::StrJoin(inputs, ", ") + ")";
}

// Elements of a float Const.
inline std::vector<float> FloatsOf(const Graph& graph,
                                   const std::string& name) {
  const graph::NodeId id = graph.Find(name);
  if (id == graph::kNoNode) return {};
  const absl::StatusOr<Tensor> value = FloatConstValue(graph.node(id));
  EXPECT_TRUE(value.ok()) << value.status();
  if (!value.ok()) return {};
  const absl::Span<const float> values = value->flat<float>();
  return {values.begin(), values.end()};
}

// The shape of a float Const.
inline std::vector<int64_t> DimsOf(const Graph& graph,
                                   const std::string& name) {
  const graph::NodeId id = graph.Find(name);
  if (id == graph::kNoNode) return {};
  const absl::StatusOr<Tensor> value = FloatConstValue(graph.node(id));
  EXPECT_TRUE(value.ok()) << value.status();
  if (!value.ok()) return {};
  return {value->shape().dims().begin(), value->shape().dims().end()};
}

// Skipped nodes as "node: reason".
inline std::vector<std::string> Skipped(const TransformReport& report) {
  std::vector<std::string> lines;
  for (const SkippedMatch& skipped : report.skipped) {
    lines.push_back(skipped.node + ": " + skipped.reason);
  }
  return lines;
}

// A float output of the graph.
inline std::vector<float> Run(const Graph& graph, const std::string& input,
                              const Tensor& value, const std::string& output) {
  const auto session =
      runtime::Session::Create(graph, graph::ParseTensorNames(input).value(),
                               graph::ParseTensorNames(output).value());
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return {};
  const auto outputs = (*session)->Run({value});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return {};
  const absl::Span<const float> values = (*outputs)[0].flat<float>();
  return {values.begin(), values.end()};
}

// A tensor of numbers between -1 and 1 that repeat after a while.
inline Tensor Wave(const runtime::Shape& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    values.push_back(static_cast<float>((i * 37 + 11) % 101 - 50) / 50.0f);
  }
  return Tensor::FromValues<float>(shape, values);
}

inline std::vector<float> WaveValues(int64_t count) {
  const Tensor wave = Wave({count});
  return {wave.flat<float>().begin(), wave.flat<float>().end()};
}

// Numbers between -1 and 1 without a pattern, the same on every machine.
inline std::vector<float> RandomValues(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random() % 2001) / 1000.0f - 1.0f);
  }
  return values;
}

MATCHER_P2(AllNear, expected, tolerance, "is close to the expected values") {
  if (arg.size() != expected.size()) return false;
  for (size_t i = 0; i < arg.size(); ++i) {
    if (!(std::abs(arg[i] - expected[i]) <= tolerance)) {
      *result_listener << "at " << i << ": " << arg[i] << " and "
                       << expected[i];
      return false;
    }
  }
  return true;
}

}  // namespace optfarm::transforms::testing

#endif  // OPTFARM_TESTS_ENGINE_TRANSFORMS_TRANSFORM_TESTING_H_
