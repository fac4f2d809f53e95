// A graph from bytes, as far as a model file gets before it runs: parsed,
// checked, its shapes inferred, a session planned and run without feeds.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/graph/shape_inference.h"
#include "engine/graph/verify.h"
#include "engine/runtime/session/session.h"

namespace {

void Use(optfarm::graph::Graph graph) {
  optfarm::graph::VerifyOptions verify;
  verify.refuse_nan = true;
  optfarm::graph::Verify(graph, verify).IgnoreError();
  optfarm::graph::IoRequest io;
  io.take_all_outputs = true;
  (void)optfarm::graph::InferIo(graph, io);
  (void)optfarm::graph::InferShapes(graph);
  std::vector<optfarm::graph::TensorName> fetches;
  for (optfarm::graph::NodeId id : graph.Ids()) {
    if (graph.node(id).uses().empty()) {
      fetches.push_back({graph.node(id).name(), 0});
    }
  }
  optfarm::runtime::SessionOptions options;
  options.print = [](absl::string_view) {};
  options.memory_limit = int64_t{64} << 20;
  auto session = optfarm::runtime::Session::Create(graph, {}, fetches, options);
  if (!session.ok()) return;
  // A graph may loop for ever, and a few words may ask for gigabytes.
  optfarm::runtime::RunOptions run;
  run.timeout = absl::Milliseconds(100);
  run.memory_limit = int64_t{64} << 20;
  (void)(*session)->Run({}, run);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto def = optfarm::formats::ParseGraphDef(
      absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!def.ok()) return 0;
  auto graph = optfarm::graph::Graph::FromDef(*std::move(def));
  if (graph.ok()) Use(*std::move(graph));
  return 0;
}
