// What a job works on, as the search and its measurements share it.

#ifndef OPTFARM_ENGINE_OPTIMIZE_JUDGING_OPTIMIZER_INPUT_H_
#define OPTFARM_ENGINE_OPTIMIZE_JUDGING_OPTIMIZER_INPUT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/optimize/judging/detections.h"
#include "engine/optimize/samples/dataset.h"
#include "engine/optimize/samples/local_data.h"
#include "engine/optimize/samples/sample_reader.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::optimize {

// OWNERSHIP: pointers are the caller's.
struct OptimizerInput {
  const graph::Graph* original = nullptr;
  // UNITS: bytes of the original's file.
  int64_t original_bytes = 0;
  std::vector<graph::TensorName> inputs;
  std::vector<graph::TensorName> outputs;
  // Set when the outputs are a detector's.
  std::optional<Detector> detector;
  const v1::Recipe* recipe = nullptr;
  const Dataset* dataset = nullptr;
  SampleReader* reader = nullptr;
  // What `dataset` was opened from; may have labels.
  const LocalData* data = nullptr;
  // Names of classes that the model's file gives; may be empty.
  absl::Span<const std::string> class_names;
  // Opens the same data with other preprocessing; empty for made-up samples.
  std::function<absl::StatusOr<Dataset>(const v1::Preprocessing&)> open_data;
  // Whether a result can be written as the job wants it; null: any can.
  std::function<bool(const graph::Graph&)> can_be_written;
  // Folder that the range log is written to.
  std::string out_folder;
  int threads = 1;
  // Stage, and fraction of the whole job.
  std::function<void(absl::string_view, double)> progress;

  void Report(absl::string_view stage, double fraction) const {
    if (progress) progress(stage, fraction);
  }
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_JUDGING_OPTIMIZER_INPUT_H_
