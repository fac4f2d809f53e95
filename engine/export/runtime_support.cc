#include "engine/export/runtime_support.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace optfarm::exporting {
namespace {

using inspect::CompatibilityTarget;
using inspect::Incompatibility;

constexpr RuntimeTarget kTargets[] = {
    {"optfarm", "Optfarm's runtime", ModelFormat::kGraph,
     CompatibilityTarget::kRuntime, "int8"},
    {"tensorflow-1.4", "TensorFlow 1.4", ModelFormat::kGraph,
     CompatibilityTarget::kTensorFlow14, "int8-tf14"},
    {"tensorflow", "later TensorFlow", ModelFormat::kGraph,
     CompatibilityTarget::kLaterTensorFlow, "int8-tf14"},
    {"onnxruntime", "ONNX Runtime", ModelFormat::kOnnx,
     CompatibilityTarget::kRuntime, "int8"},
    {"tflite", "TensorFlow Lite", ModelFormat::kTflite,
     CompatibilityTarget::kRuntime, "int8"},
};

std::vector<graph::NodeId> NodesOf(
    const std::vector<graph::GraphTensor>& tensors) {
  std::vector<graph::NodeId> nodes;
  for (const graph::GraphTensor& tensor : tensors) {
    nodes.push_back(tensor.tensor.node);
  }
  return nodes;
}

// Reads "node 'x' (Op): why", a line of the writers' errors. A name may hold
// anything, so the op is looked for from behind the last quote before a '('.
bool ReadReason(absl::string_view line, Incompatibility* problem) {
  if (!absl::ConsumePrefix(&line, "node '")) return false;
  const size_t name = line.find("' (");
  if (name == absl::string_view::npos) return false;
  const size_t op = line.find("): ", name);
  if (op == absl::string_view::npos) return false;
  problem->example = std::string(line.substr(0, name));
  problem->op = std::string(line.substr(name + 3, op - name - 3));
  problem->problem = std::string(line.substr(op + 3));
  problem->nodes = 1;
  return true;
}

}  // namespace

std::vector<Incompatibility> ReadReasons(absl::string_view message) {
  std::vector<Incompatibility> problems;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const absl::string_view line : absl::StrSplit(message, '\n')) {
    Incompatibility problem;
    if (!ReadReason(absl::StripLeadingAsciiWhitespace(line), &problem)) {
      continue;
    }
    const auto [place, is_new] =
        places.try_emplace({problem.op, problem.problem}, problems.size());
    if (is_new) {
      problems.push_back(std::move(problem));
    } else {
      ++problems[place->second].nodes;
    }
  }
  return problems;
}

absl::Span<const RuntimeTarget> RuntimeTargets() { return kTargets; }

absl::StatusOr<const RuntimeTarget*> FindRuntimeTarget(absl::string_view name) {
  std::string names;
  for (const RuntimeTarget& target : kTargets) {
    if (name == target.name) return &target;
    absl::StrAppend(&names, names.empty() ? "" : ", ", target.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no runtime '", name, "'; give one of ", names));
}

absl::StatusOr<std::vector<Incompatibility>> FindProblems(
    const graph::Graph& graph, const graph::GraphIo& io,
    const RuntimeTarget& target) {
  if (target.format == ModelFormat::kGraph) {
    return inspect::FindIncompatibilities(
        graph, NodesOf(io.inputs), NodesOf(io.outputs), target.compatibility);
  }
  ExportOptions options;
  options.format = target.format;
  const absl::Status written = ExportModel(graph, io, options).status();
  if (written.ok()) return std::vector<Incompatibility>();
  std::vector<Incompatibility> problems = ReadReasons(written.message());
  if (problems.empty()) return written;
  return problems;
}

}  // namespace optfarm::exporting
