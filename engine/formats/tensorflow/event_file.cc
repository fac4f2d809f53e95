#include "engine/formats/tensorflow/event_file.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/formats/files/tfrecord.h"
#include "engine/formats/tensorflow/graph_file.h"
#include "tensorflow/core/util/event.pb.h"

namespace optfarm::formats {
namespace {

constexpr char kColocation[] = "loc:@";

}  // namespace

absl::StatusOr<std::string> GraphToEventFile(const tensorflow::GraphDef& graph,
                                             absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(now - absl::UnixEpoch());
  tensorflow::Event version, content;
  version.set_wall_time(seconds);
  version.set_file_version("brain.Event:2");
  content.set_wall_time(seconds);
  OPTFARM_ASSIGN_OR_RETURN(*content.mutable_graph_def(),
                           SerializeGraphDef(graph));
  if (content.ByteSizeLong() > kMaxGraphBytes) {
    return absl::ResourceExhaustedError(
        "the graph is too large for one record of an event file, 2 GB");
  }
  std::string file;
  AppendRecord(version.SerializeAsString(), &file);
  AppendRecord(content.SerializeAsString(), &file);
  return file;
}

std::string EventFileName(absl::Time now, const std::string& host) {
  return absl::StrFormat("events.out.tfevents.%010d.%s",
                         absl::ToUnixSeconds(now), host);
}

tensorflow::GraphDef ImportedGraph(tensorflow::GraphDef graph,
                                   const std::string& scope) {
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    node.set_name(absl::StrCat(scope, "/", node.name()));
    for (std::string& input : *node.mutable_input()) {
      absl::string_view name = input;
      const bool control = absl::ConsumePrefix(&name, "^");
      input = absl::StrCat(control ? "^" : "", scope, "/", name);
    }
    const auto found = node.mutable_attr()->find("_class");
    if (found == node.mutable_attr()->end()) continue;
    for (std::string& word : *found->second.mutable_list()->mutable_s()) {
      absl::string_view name = word;
      if (!absl::ConsumePrefix(&name, kColocation)) continue;
      word = absl::StrCat(kColocation, scope, "/", name);
    }
  }
  return graph;
}

}  // namespace optfarm::formats
