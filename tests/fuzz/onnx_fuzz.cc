// ONNX models: read, and checked as a graph. Whatever the bytes say, the reader
// answers with a graph that is well formed or with an error.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/check.h"
#include "engine/formats/onnx/reader.h"
#include "engine/graph/graph.h"
#include "engine/graph/model_interface.h"

namespace optfarm {
namespace {

constexpr size_t kMostBytes = 1 << 18;

void Read(absl::string_view bytes) {
  // Without a folder, names of other files are refused.
  auto def = formats::ReadOnnx(bytes, "the input", "");
  if (!def.ok()) return;
  auto graph = graph::Graph::FromDef(*std::move(def));
  // Names and edges are the reader's own doing.
  OPTFARM_CHECK(graph.ok());
  OPTFARM_CHECK(!graph::ReadModelInterface(*graph).outputs.empty());
}

}  // namespace
}  // namespace optfarm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > optfarm::kMostBytes) return 0;
  optfarm::Read(absl::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
