// What tests of 8-bit layers share: freezing ranges to what one input gives,
// and comparing answers.

#ifndef OPTFARM_TESTS_ENGINE_TRANSFORMS_LAYER_TESTING_H_
#define OPTFARM_TESTS_ENGINE_TRANSFORMS_LAYER_TESTING_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/transforms/freezing/freeze_ranges.h"
#include "tests/engine/transforms/transform_testing.h"

namespace optfarm::transforms::testing {

inline constexpr char kLayers[] =
    "quantize_layers strip_unused_nodes sort_by_execution_order";
inline constexpr char kFuse[] =
    "fuse_requantization strip_unused_nodes sort_by_execution_order";

// Run, by a name that fixtures do not have.
inline std::vector<float> Answer(const Graph& graph, const Tensor& in,
                                 const std::string& output) {
  return Run(graph, "in", in, output);
}

// Weights whose output channels (the last dimension) differ a hundredfold.
inline std::vector<float> UnlikeChannels(int64_t count, int64_t channels) {
  std::vector<float> values = WaveValues(count);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] *= std::pow(10.0f, static_cast<float>(i % channels) - 1.0f);
  }
  return values;
}

// Freezes every range to what `in` gives.
inline void Freeze(Graph* graph, const Tensor& in) {
  RangeLog log;
  for (graph::NodeId id : graph->Ids()) {
    const std::string& name = graph->node(id).name();
    if (!graph->node(id).op().starts_with("RequantizationRange")) continue;
    const float min = Answer(*graph, in, name)[0];
    const float max = Answer(*graph, in, name + ":1")[0];
    log[name] = {{min, max}};
  }
  OPTFARM_ASSERT_OK(FreezeRanges(graph, log, {0, 0}).status());
}

inline void ExpectClose(const Graph& original, const Graph& graph,
                        const Tensor& in, const std::string& output,
                        float share) {
  const std::vector<float> wanted = Answer(original, in, output);
  float largest = 0;
  for (float value : wanted) largest = std::max(largest, std::abs(value));
  EXPECT_THAT(Answer(graph, in, output), AllNear(wanted, share * largest));
}

inline std::vector<std::string> Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (graph::NodeId id : graph.Ids()) ops.push_back(graph.node(id).op());
  return ops;
}

}  // namespace optfarm::transforms::testing

#endif  // OPTFARM_TESTS_ENGINE_TRANSFORMS_LAYER_TESTING_H_
