// The graphs of the shared models and of the reference results, for tests of
// this room, which may not use the loaders of engine/formats.

#ifndef OPTFARM_TESTS_ENGINE_GRAPH_MODEL_FILES_H_
#define OPTFARM_TESTS_ENGINE_GRAPH_MODEL_FILES_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"
#include "tests/support/test_data.h"

namespace optfarm::graph::testing {

// Paths of all graph files below the test data's models and golden folders,
// sorted. Empty without test data.
inline std::vector<std::string> ModelFiles() {
  std::vector<std::string> paths;
  for (const char* folder : {"models", "golden"}) {
    const std::string root = optfarm::testing::TestDataPath(folder);
    if (root.empty() || !std::filesystem::exists(root)) continue;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root)) {
      const std::string path = entry.path().string();
      for (const char* suffix : {".pb", ".meta", ".pbtxt"}) {
        if (absl::EndsWith(path, suffix)) paths.push_back(path);
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The graph, or for a SavedModel the graphs, that the file holds; which kind
// it is, is told from its name.
inline absl::StatusOr<std::vector<tensorflow::GraphDef>> ReadGraphs(
    const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<tensorflow::GraphDef> graphs(1);
  bool ok = false;
  if (absl::EndsWith(path, "saved_model.pb")) {
    tensorflow::SavedModel model;
    ok = model.ParseFromString(bytes);
    graphs.clear();
    for (const auto& meta : model.meta_graphs()) {
      graphs.push_back(meta.graph_def());
    }
  } else if (absl::EndsWith(path, ".meta")) {
    tensorflow::MetaGraphDef meta;
    ok = meta.ParseFromString(bytes);
    graphs[0] = meta.graph_def();
  } else if (absl::EndsWith(path, ".pbtxt")) {
    ok = google::protobuf::TextFormat::ParseFromString(bytes, &graphs[0]);
  } else {
    ok = graphs[0].ParseFromString(bytes);
  }
  if (!ok) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path));
  }
  return graphs;
}

}  // namespace optfarm::graph::testing

#endif  // OPTFARM_TESTS_ENGINE_GRAPH_MODEL_FILES_H_
