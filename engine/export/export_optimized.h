// The result of a job as a model file of another format.

#ifndef OPTFARM_ENGINE_EXPORT_EXPORT_OPTIMIZED_H_
#define OPTFARM_ENGINE_EXPORT_EXPORT_OPTIMIZED_H_

#include <string>

#include "absl/status/statusor.h"
#include "engine/export/export_model.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::exporting {

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
