#include "engine/optimize/report/runtime_support.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/export/runtime_support.h"

namespace optfarm::optimize {
namespace {

using exporting::RuntimeTarget;

constexpr int64_t kMostWrittenBytes = int64_t{256} << 20;
constexpr int kMostProblems = 5;

// The same inputs and outputs in another graph.
absl::StatusOr<graph::GraphIo> FindIo(const graph::Graph& graph,
                                      const graph::GraphIo& io) {
  graph::IoRequest request;
  for (const graph::GraphTensor& input : io.inputs) {
    request.inputs.push_back({input.name, input.dtype, input.shape});
  }
  for (const graph::GraphTensor& output : io.outputs) {
    request.outputs.push_back(output.name);
  }
  return graph::InferIo(graph, request);
}

void AddProblems(const std::vector<inspect::Incompatibility>& problems,
                 v1::RuntimeSupport* support) {
  for (const inspect::Incompatibility& problem : problems) {
    if (support->problems_size() == kMostProblems) return;
    support->add_problems(absl::StrCat(problem.op, " ", problem.problem));
  }
}

}  // namespace

void AddRuntimeSupport(const graph::Graph& graph, const graph::GraphIo& io,
                       v1::Report* report) {
  const auto found = FindIo(graph, io);
  if (!found.ok()) return;
  const bool small = report->size_after().file_bytes() <= kMostWrittenBytes;
  for (const RuntimeTarget& target : exporting::RuntimeTargets()) {
    if (target.format != exporting::ModelFormat::kGraph && !small) continue;
    const auto problems = exporting::FindProblems(graph, *found, target);
    v1::RuntimeSupport& support = *report->add_runtimes();
    support.set_runtime(target.name);
    support.set_title(target.title);
    support.set_file_format(std::string(exporting::FormatName(target.format)));
    support.set_runs(problems.ok() && problems->empty());
    if (support.runs()) continue;
    if (problems.ok()) {
      AddProblems(*problems, &support);
    } else {
      support.add_problems(std::string(problems.status().message()));
    }
    if (report->recipe_name() != target.recipe) {
      support.set_recipe(target.recipe);
    }
  }
}

}  // namespace optfarm::optimize
