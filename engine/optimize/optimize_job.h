// One optimization from a model file to a report: the room's one main header.
//
//   load > verify > infer inputs and outputs > transform > calibrate > freeze
//   ranges > compare with the original > accuracy > gates > report
//
// Files written into the request's out_folder:
//   optimized.pb     the optimized graph
//   transforms.txt   a transform_graph command line that makes it again
//   calibration.log  observed ranges in TensorFlow's log format, if calibrated
//   rounding_shifts.txt  what adapted rounding changed of weights and biases
//   bias_shifts.txt  what was added to biases, if they were corrected
//   layers.svg       signal to noise of each layer, if they were compared
//   sensitivity.svg  the same beside that of each layer alone, if asked for
//   histograms.svg   distributions of chosen layers' values, if asked for
//   input_ranges.log ranges of quantized float inputs, if they were frozen
//   optimized.onnx, optimized.tflite  the optimized graph as such a model, if
//                    asked for
//   name_map.tsv     new and old names, if a transform hid the old ones
//   report.json      the report, as protobuf's JSON mapping
// The same model, recipe, data and version give the same bytes of the first
// three; the report also holds durations.

#ifndef OPTFARM_ENGINE_OPTIMIZE_OPTIMIZE_JOB_H_
#define OPTFARM_ENGINE_OPTIMIZE_OPTIMIZE_JOB_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/optimize/samples/local_data.h"
#include "optfarm/v1/recipes.pb.h"
#include "optfarm/v1/report.pb.h"

namespace optfarm::optimize {

struct OptimizeRequest {
  std::string model_path;
  v1::Recipe recipe;
  // What the user said of inputs and outputs; empty: inferred. Type and shape
  // of an input may be left out.
  std::vector<v1::TensorSpec> inputs;
  std::vector<std::string> outputs;
  // What is fed and how, and the labels; may be empty.
  LocalData data;
  // Existing folder for the files made.
  std::string out_folder;
  // Both go into the report.
  std::optional<v1::ModelOrigin> model_origin;
  std::string tool_version;
  int threads = 1;
  // Formats to have the result in; PB and an empty list add nothing. A format
  // that cannot hold it is told in the report.
  std::vector<v1::ModelFormat> out_formats;
  // Also write what devices need: check_float.pb and check_optimized.pb to
  // compare their answers with (check_sample.h), and a model of another format
  // as a graph, float.pb, because their runtime reads no other formats.
  bool is_for_devices = false;
};

// How far a job is. Called from the thread that runs the job.
struct OptimizeProgress {
  // "transforming", "calibrating", "comparing", ...
  std::string stage;
  // Of the whole job, 0..1, never falling.
  double fraction = 0;
};
using OptimizeProgressFn = std::function<void(const OptimizeProgress&)>;

// Runs the job. A gate that fails is no error: the report's `passed` is false
// then, its gates say why, and the files are written.
// ERRORS: a user's mistakes (model, data, names, recipe) are InvalidArgument,
// NotFound, FailedPrecondition, Unimplemented, PermissionDenied, OutOfRange or
// ResourceExhausted, and say what to change; anything else is ours or the
// machine's.
absl::StatusOr<v1::Report> RunOptimize(const OptimizeRequest& request,
                                       const OptimizeProgressFn& progress);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_OPTIMIZE_JOB_H_
