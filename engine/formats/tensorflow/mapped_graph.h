// A binary graph whose large constants stay in its file.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_MAPPED_GRAPH_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_MAPPED_GRAPH_H_

#include <memory>
#include <optional>
#include <string>

#include "base/mapped_file.h"
#include "engine/formats/tensorflow/memmapped_package.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

struct LoadedGraph {
  tensorflow::GraphDef def;
  // Where ImmutableConst nodes have their values; nullptr for other graphs. A
  // session keeps what it uses.
  std::shared_ptr<const MemmappedPackage> package;
};

// Reads a binary graph in which nothing is wrong; nullopt when the file needs a
// closer look (LoadGraphDef of graph_file.h). What this accepts, that accepts
// as well. Constants that are views of the file are ImmutableConst nodes of the
// result; `path` stands in messages about them.
std::optional<LoadedGraph> ReadMappedGraph(
    const std::shared_ptr<const MappedFile>& file, const std::string& path);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_MAPPED_GRAPH_H_
