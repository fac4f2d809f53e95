// Applies a list of transforms to a graph: the driver owns the chores (checking
// the parameters, going back on ignored errors, verifying, counting, timing) so
// that a transform only rewrites. Start here to understand the room.

#ifndef OPTFARM_ENGINE_TRANSFORMS_MACHINERY_PIPELINE_H_
#define OPTFARM_ENGINE_TRANSFORMS_MACHINERY_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "engine/graph/graph.h"
#include "engine/graph/tensor_name.h"
#include "engine/transforms/machinery/transform.h"
#include "engine/transforms/machinery/transform_string.h"

namespace optfarm::transforms {

struct PipelineOptions {
  // Folder that files named by parameters must lie in, given by paths relative
  // to it. Empty: paths are taken as they are (a user's own command line).
  std::string base_folder;
  // Checks the graph after each step (verify.h), unless it was invalid before.
  bool verify = true;
  // Reads variables for transforms that can take them from a checkpoint; may be
  // empty.
  CheckpointReader checkpoint_reader;
  // Where durations come from. OWNERSHIP: outlives the run.
  Clock* clock = RealClock();
  // Called before each step; a failed status ends the run with it.
  std::function<absl::Status(absl::string_view step)> before_step;
};

// Nodes that came (`from` is empty), went (`to` is empty) or became nodes of
// another op.
struct OpChange {
  std::string from;
  std::string to;
  int64_t nodes = 0;

  friend bool operator==(const OpChange&, const OpChange&) = default;
};

// One step's outcome.
struct TransformStats {
  // The step as text.
  std::string step;
  int nodes_before = 0;
  int nodes_after = 0;
  // UNITS: bytes of all Const nodes' values.
  int64_t constant_bytes_before = 0;
  int64_t constant_bytes_after = 0;
  absl::Duration duration;
  // By op; nodes whose op stayed are not in it.
  std::vector<OpChange> op_changes;
  // Empty of changes when the step's error was ignored.
  TransformReport report;
  // The ignored error; OK otherwise.
  absl::Status ignored_error;
};

struct PipelineReport {
  std::vector<TransformStats> steps;
};

// First and last name of each renamed node that is still in the graph which the
// steps made, when one of them left names that say nothing; else empty.
std::vector<RenamedNode> MakeNameMap(absl::Span<const TransformStats> steps,
                                     const graph::Graph& graph);

// A name map as text: a line for each node, its last name, a tab, its first.
// Characters that are not printable are written as in C.
std::string PrintNameMap(absl::Span<const RenamedNode> name_map);

// Name maps are kept under this name, or with it added to the graph's.
inline constexpr char kNameMapFile[] = "name_map.tsv";

// Applies `steps` in order. Versions and function library are kept. Declared
// inputs and outputs are the whole model's; each must name a node that is in
// the graph, afterwards too.
// ERRORS: InvalidArgument for an unknown transform, a bad parameter or a
// declared name that is not in the graph, before anything is changed;
// afterwards the failing transform's error with its name, InvalidArgument when
// a valid graph became invalid (verify.h), or Internal when a declared input or
// output was removed. The graph is then in an unspecified state. With
// ignore_errors=true these errors put the graph back as it was before the step.
absl::StatusOr<PipelineReport> RunTransforms(
    graph::Graph* graph, absl::Span<const TransformStep> steps,
    absl::Span<const graph::TensorName> inputs,
    absl::Span<const graph::TensorName> outputs,
    const PipelineOptions& options = {});

}  // namespace optfarm::transforms

#endif  // OPTFARM_ENGINE_TRANSFORMS_MACHINERY_PIPELINE_H_
