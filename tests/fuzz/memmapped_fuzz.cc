// Memory-mapped packages: what loads as a graph is written and loads again.

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/check.h"
#include "engine/formats/tensorflow/memmapped_package.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace formats = optfarm::formats;
  const auto package = formats::MemmappedPackage::FromBytes(
      absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!package.ok()) return 0;
  auto graph = (*package)->GraphWithConstants();
  if (!graph.ok()) return 0;
  const int nodes = graph->node_size();
  const auto written = formats::SerializeMemmapped(*std::move(graph), 1);
  if (!written.ok()) return 0;
  const auto again =
      formats::MemmappedPackage::FromBytes(written->bytes, "again");
  OPTFARM_CHECK(again.ok());
  const auto read = (*again)->GraphWithConstants();
  OPTFARM_CHECK(read.ok() && read->node_size() == nodes);
  return 0;
}
