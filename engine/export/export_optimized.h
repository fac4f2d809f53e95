// The result of a job as a model file of another format.

#ifndef OPTFARM_ENGINE_EXPORT_EXPORT_OPTIMIZED_H_
#define OPTFARM_ENGINE_EXPORT_EXPORT_OPTIMIZED_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/export/convert_file.h"
#include "engine/export/export_model.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::exporting {

// Name of a job's file in this format: "optimized.pb", "optimized.onnx",
// "optimized.tflite"; empty for a format that we do not know.
std::string OptimizedName(v1::ModelFormat format);

// REQUIRES: OptimizedName(format) is not empty.
ModelFormat ToFileFormat(v1::ModelFormat format);

// How a job's result becomes a file of `format`: with the inputs and outputs
// of its report.
ConvertOptions OptionsFor(const v1::Report& report, ModelFormat format);

// All that a format cannot hold, for people, by the error of a conversion: one
// phrase each, with the op in front and the nodes counted; or the error's
// message alone.
std::vector<std::string> DescribeReasons(const absl::Status& error);

// Reads the graph file `optimized` that a job made and writes it to `to` in
// `format`, with the inputs and outputs of the job's report. Returns one line
// about it, as ConvertFile does.
// ERRORS: ConvertFile's; nothing is written then.
absl::StatusOr<std::string> ExportOptimized(const std::string& optimized,
                                            const v1::Report& report,
                                            ModelFormat format,
                                            const std::string& to);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_EXPORT_OPTIMIZED_H_
