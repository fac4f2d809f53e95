// Turns what a job found into its report and its files.

#ifndef OPTFARM_ENGINE_OPTIMIZE_REPORT_WRITER_H_
#define OPTFARM_ENGINE_OPTIMIZE_REPORT_WRITER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/infer_io.h"
#include "engine/optimize/optimizer.h"
#include "engine/optimize/samples/sample_reader.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

// What one transform did, with at most that many of the matches it left alone;
// -1: all.
v1::TransformStats DescribeStep(const transforms::TransformStats& stats,
                                const transforms::TransformStep& step,
                                int most_skipped);

v1::TensorSpec ToSpec(const graph::GraphTensor& tensor);

// Transforms, calibration, comparison, sizes, gates, transform string.
void FillReport(const OptimizerInput& job, const Attempt& attempt,
                const SampleReader& reader, v1::Report* report);

// Adds layers, worst signal-to-noise first; those not compared are left out.
void AddLayers(absl::Span<const v1::TensorComparison> layers,
               v1::Report* report);

// Writes the files and names them in the report; report.json comes last and
// does not list itself. `layers` are CompareByLayer's, in their order.
// ERRORS: those of writing files.
absl::Status WriteArtifacts(const std::string& folder,
                            const OptimizerInput& job, const Attempt& attempt,
                            absl::Span<const v1::TensorComparison> layers,
                            v1::Report* report);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_REPORT_WRITER_H_
