// Runs a model once on made-up values, to compare two forms of it.

#ifndef OPTFARM_TESTS_GOLDEN_RUN_ONCE_H_
#define OPTFARM_TESTS_GOLDEN_RUN_ONCE_H_

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/runtime/session/session.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::testing {

// Runs on seeded values; the shape's unknown sizes are 1.
inline absl::StatusOr<std::vector<runtime::Tensor>> RunOnce(
    const tensorflow::GraphDef& def, const std::string& output,
    runtime::RegionFinder find_region = nullptr) {
  auto graph = graph::Graph::FromDef(def);
  if (!graph.ok()) return graph.status();
  graph::IoRequest request;
  request.outputs = {output};
  auto io = graph::InferIo(*graph, request);
  if (!io.ok()) return io.status();
  std::vector<graph::TensorName> feeds;
  std::vector<runtime::Tensor> values;
  std::mt19937 random(7);
  for (const graph::GraphTensor& input : io->inputs) {
    std::vector<int64_t> sizes;
    for (int i = 0; i < input.shape.rank(); ++i) {
      sizes.push_back(input.shape.dim(i));
    }
    auto shape = runtime::Shape::FromDims(sizes);
    if (!shape.ok()) return shape.status();
    auto value = runtime::Tensor::Zeros(input.dtype, *shape);
    if (!value.ok()) return value.status();
    if (input.dtype == tensorflow::DT_FLOAT) {
      for (float& v : value->flat<float>()) {
        v = static_cast<float>(random() % 256) / 255;
      }
    }
    feeds.push_back({graph->node(input.tensor.node).name(), input.tensor.port});
    values.push_back(*std::move(value));
  }
  runtime::SessionOptions options;
  options.print = [](absl::string_view) {};
  options.find_region = std::move(find_region);
  auto session =
      runtime::Session::Create(*graph, feeds, {{output, 0}}, options);
  if (!session.ok()) return session.status();
  return (*session)->Run(values);
}

}  // namespace optfarm::testing

#endif  // OPTFARM_TESTS_GOLDEN_RUN_ONCE_H_
