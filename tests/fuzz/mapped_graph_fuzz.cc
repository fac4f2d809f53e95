// A binary graph whose large constants stay in its file: taken as it is taken
// when it is read, and run without feeds. Each `<64K>` of an input stands for
// 64 KB of zeros, so that small inputs have large constants.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/check.h"
#include "base/files.h"
#include "base/mapped_file.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "engine/formats/tensorflow/loaded_graph.h"
#include "engine/formats/tensorflow/mapped_graph.h"
#include "engine/graph/attr.h"
#include "engine/graph/graph.h"
#include "engine/runtime/session/session.h"

namespace optfarm {
namespace {

constexpr char kMemory[] = "/dev/shm";
constexpr size_t kMostBytes = 1 << 20;

void ExpectSame(const formats::LoadedGraph& mapped,
                const tensorflow::GraphDef& read) {
  OPTFARM_CHECK(mapped.def.node_size() == read.node_size());
  for (int i = 0; i < read.node_size(); ++i) {
    const tensorflow::NodeDef& node = mapped.def.node(i);
    OPTFARM_CHECK(node.name() == read.node(i).name());
    if (node.op() != "ImmutableConst") {
      OPTFARM_CHECK(node.op() == read.node(i).op());
      continue;
    }
    OPTFARM_CHECK(read.node(i).op() == "Const");
    const auto elements = mapped.package->Find(
        graph::GetString(node, "memory_region_name").value_or(""));
    OPTFARM_CHECK(
        elements.ok() &&
        *elements == read.node(i).attr().at("value").tensor().tensor_content());
  }
}

void Run(formats::LoadedGraph loaded) {
  auto graph = graph::Graph::FromDef(std::move(loaded.def));
  if (!graph.ok()) return;
  std::vector<graph::TensorName> fetches;
  for (graph::NodeId id : graph->Ids()) {
    if (graph->node(id).uses().empty()) {
      fetches.push_back({graph->node(id).name(), 0});
    }
  }
  runtime::SessionOptions options;
  options.print = [](absl::string_view) {};
  options.memory_limit = int64_t{64} << 20;
  options.find_region = formats::RegionsOf(loaded.package);
  auto session =
      runtime::Session::Create(*std::move(graph), {}, fetches, options);
  if (!session.ok()) return;
  runtime::RunOptions run;
  run.timeout = absl::Milliseconds(100);
  run.memory_limit = int64_t{64} << 20;
  (void)(*session)->Run({}, run);
}

std::string MakeFolder() {
  auto folder = MakeTemporaryFolder("mapped_graph_fuzz",
                                    IsFolder(kMemory) ? kMemory : "");
  OPTFARM_CHECK(folder.ok());
  return *std::move(folder);
}

void Load(const std::string& bytes) {
  static const ScopedFolder folder(MakeFolder());
  const std::string path = JoinPath(folder.path(), "graph.pb");
  OPTFARM_CHECK(WriteFileAtomically(path, bytes).ok());
  const auto file = MappedFile::Open(path);
  OPTFARM_CHECK(file.ok());
  std::optional<formats::LoadedGraph> mapped =
      formats::ReadMappedGraph(*file, path);
  if (!mapped) return;
  const auto read = formats::ParseGraphDef(bytes, "fuzz");
  OPTFARM_CHECK(read.ok());
  ExpectSame(*mapped, *read);
  Run(*std::move(mapped));
}

}  // namespace
}  // namespace optfarm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes = absl::StrReplaceAll(
      absl::string_view(reinterpret_cast<const char*>(data), size),
      {{"<64K>", std::string(64 * 1024, '\0')}});
  if (bytes.size() <= optfarm::kMostBytes) optfarm::Load(bytes);
  return 0;
}
