#include "engine/export/export_optimized.h"

#include <cstdint>
#include <vector>

#include "engine/export/convert_file.h"
#include "engine/graph/partial_shape.h"

namespace optfarm::exporting {

absl::StatusOr<std::string> ExportOptimized(const std::string& optimized,
                                            const v1::Report& report,
                                            ModelFormat format,
                                            const std::string& to) {
  ConvertOptions options;
  options.written.format = format;
  for (const v1::TensorSpec& spec : report.inputs()) {
    graph::InputRequest& input = options.io.inputs.emplace_back();
    input.name = spec.name();
    if (!spec.shape_known()) continue;
    input.shape = graph::PartialShape(
        std::vector<int64_t>(spec.shape().begin(), spec.shape().end()));
  }
  for (const v1::TensorSpec& spec : report.outputs()) {
    options.io.outputs.push_back(spec.name());
  }
  return ConvertFile(optimized, to, options);
}

}  // namespace optfarm::exporting
