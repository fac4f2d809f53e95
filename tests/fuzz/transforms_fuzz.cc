// A transform string in the first line, and a graph for it to change in the
// others.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/transforms/machinery/pipeline.h"
#include "engine/transforms/machinery/transform_string.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace optfarm;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  const auto steps = transforms::ParseTransforms(text.substr(0, line));
  if (!steps.ok()) return 0;
  const auto again =
      transforms::ParseTransforms(transforms::PrintTransforms(*steps));
  if (!again.ok() || again->size() != steps->size()) std::abort();
  if (line == absl::string_view::npos) return 0;

  auto def = formats::ParseGraphDef(text.substr(line + 1), "fuzz");
  if (!def.ok() || def->node_size() > 200) return 0;
  auto graph = graph::Graph::FromDef(*std::move(def));
  if (!graph.ok()) return 0;
  transforms::PipelineOptions options;
  // No file of this machine is to be read because a parameter names it.
  options.base_folder = "/nonexistent";
  // The last node stands for the output, as in most files.
  std::vector<graph::TensorName> outputs;
  if (const auto nodes = graph->Ids(); !nodes.empty()) {
    outputs.push_back({graph->node(nodes.back()).name(), 0});
  }
  (void)transforms::RunTransforms(&*graph, *steps, {}, outputs, options);
  return 0;
}
