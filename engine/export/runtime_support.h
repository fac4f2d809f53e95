// Which runtimes run a graph: our own and TensorFlow's by the graph's ops, ONNX
// Runtime and TensorFlow Lite by whether the graph can be written as a file
// that they read.

#ifndef OPTFARM_ENGINE_EXPORT_RUNTIME_SUPPORT_H_
#define OPTFARM_ENGINE_EXPORT_RUNTIME_SUPPORT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/export/export_model.h"
#include "engine/graph/graph.h"
#include "engine/graph/infer_io.h"
#include "engine/inspect/compatibility.h"

namespace optfarm::exporting {

// A runtime that a model can be meant for.
struct RuntimeTarget {
  // As flags and reports have it: "tensorflow-1.4".
  const char* name;
  // For people: "TensorFlow 1.4".
  const char* title;
  // What it reads.
  ModelFormat format;
  // For targets that read graphs.
  inspect::CompatibilityTarget compatibility;
  // The built-in 8-bit recipe whose results it runs.
  const char* recipe;
};

// Ours first. OWNERSHIP: constant data.
absl::Span<const RuntimeTarget> RuntimeTargets();

// ERRORS: InvalidArgument with the names that are known.
absl::StatusOr<const RuntimeTarget*> FindRuntimeTarget(absl::string_view name);

// What keeps the target from running the graph; empty when it can. A graph for
// ONNX Runtime or TensorFlow Lite is written in memory. ERRORS: those of
// writing that say nothing about the graph's nodes, such as ResourceExhausted.
absl::StatusOr<std::vector<inspect::Incompatibility>> FindProblems(
    const graph::Graph& graph, const graph::GraphIo& io,
    const RuntimeTarget& target);

// The reasons in a writer's error, equal ones of an op counted; empty for an
// error of another kind.
std::vector<inspect::Incompatibility> ReadReasons(absl::string_view message);

}  // namespace optfarm::exporting

#endif  // OPTFARM_ENGINE_EXPORT_RUNTIME_SUPPORT_H_
