#include "engine/export/convert_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/files.h"
#include "base/human_units.h"
#include "base/status_macros.h"
#include "engine/formats/models/load_model.h"
#include "engine/graph/graph.h"

namespace optfarm::exporting {
namespace {

// A relative difference above which the line says so.
constexpr double kLargeDifference = 0.01;

std::string DescribeDifference(const ExportDifference& difference) {
  if (difference.unequal == 0) {
    return absl::StrCat("read back: all ", difference.elements,
                        " elements of the answers are equal");
  }
  const bool is_large =
      difference.largest > kLargeDifference * difference.magnitude;
  return absl::StrFormat(
      "read back: largest difference %.2g of %.3g ('%s')%s", difference.largest,
      difference.magnitude, difference.output,
      is_large ? ", which is large: look at it before you ship the file" : "");
}

}  // namespace

absl::StatusOr<std::string> ConvertFile(const std::string& from,
                                        const std::string& to,
                                        const ConvertOptions& options) {
  OPTFARM_ASSIGN_OR_RETURN(tensorflow::GraphDef def,
                           formats::LoadModelDef(from));
  absl::StatusOr<graph::Graph> graph = graph::Graph::FromDef(std::move(def));
  if (!graph.ok()) {
    return Annotate(graph.status(), absl::StrCat("'", from, "'"));
  }
  OPTFARM_ASSIGN_OR_RETURN(const graph::GraphIo io,
                           graph::InferIo(*graph, options.io));
  OPTFARM_ASSIGN_OR_RETURN(const std::string bytes,
                           ExportModel(*graph, io, options.written));
  const ModelFormat format = options.written.format;
  std::string line =
      absl::StrCat(FormatName(format),
                   format == ModelFormat::kOnnx
                       ? absl::StrCat(" (opset ", options.written.opset, ")")
                       : "",
                   ", ", HumanBytes(static_cast<int64_t>(bytes.size())));
  if (options.compare) {
    const absl::StatusOr<ExportDifference> difference =
        CompareExported(*graph, io, bytes);
    if (!difference.ok()) {
      return Annotate(difference.status(),
                      "nothing is written, because it could not be compared "
                      "with the model (--verify=no skips this)");
    }
    absl::StrAppend(&line, "; ", DescribeDifference(*difference));
  }
  OPTFARM_RETURN_IF_ERROR(WriteFileAtomically(to, bytes));
  return line;
}

}  // namespace optfarm::exporting
