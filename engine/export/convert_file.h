// A model file as a file of another format, in one call.

#ifndef OPTFARM_ENGINE_EXPORT_CONVERT_FILE_H_
#define OPTFARM_ENGINE_EXPORT_CONVERT_FILE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/export/export_model.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"

namespace optfarm::exporting {

struct ConvertOptions {
  // Its format is that of the file to write.
  ExportOptions written;
  // What the user said of inputs and outputs.
  graph::IoRequest io;
  // Reads the result back and compares its answers on random inputs.
  bool compare = true;
};

// A model as a file that has not been written yet.
struct ConvertedModel {
  std::string bytes;
  // One line about it: format, size, and how far the answers are apart.
  std::string line;
  // Absent where the answers were not compared; `line` says why.
  std::optional<ExportDifference> difference;
};

// ERRORS: those of graph::InferIo and of the writers; where answers are to be
// compared, also those of CompareExported.
absl::StatusOr<ConvertedModel> ConvertGraph(const graph::Graph& graph,
                                            const ConvertOptions& options);

// Reads a model of any format that we read and writes `to`, atomically. Returns
// one line about it: format, size, and how far the answers are apart.
// ERRORS: those of reading, of graph::InferIo, of the writers and of files;
// nothing is written then.
absl::StatusOr<std::string> ConvertFile(const std::string& from,
                                        const std::string& to,
                                        const ConvertOptions& options);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_CONVERT_FILE_H_
