#include "engine/optimize/layers/stepwise_runs.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "engine/graph/ops/op_table.h"
#include "engine/transforms/nodes/constant_nodes.h"

namespace optfarm::optimize {
namespace {

using graph::Endpoint;
using graph::NodeId;
using runtime::Session;
using runtime::Tensor;

// Where a value may be missing, or be another one in every iteration.
bool HasBranches(const graph::Graph& graph) {
  for (const NodeId id : graph.Ids()) {
    const std::string& op = graph.node(id).op();
    if (graph::IsSwitch(op) || graph::IsMerge(op)) {
      return true;
    }
  }
  return false;
}

int64_t BytesOf(const std::vector<Tensor>& values) {
  int64_t bytes = 0;
  for (const Tensor& value : values) {
    bytes += value.num_elements() *
             static_cast<int64_t>(runtime::ElementSize(value.dtype()));
  }
  return bytes;
}

}  // namespace

absl::Status RunAtOnce(
    const Session& session, absl::Span<const std::vector<Tensor>> samples,
    runtime::ThreadPool* pool,
    absl::FunctionRef<void(size_t sample, std::vector<Tensor> outputs)> take) {
  std::vector<absl::Status> states(samples.size());
  pool->ParallelFor(static_cast<int64_t>(samples.size()), 1,
                    [&](int64_t first, int64_t last) {
                      for (int64_t i = first; i < last; ++i) {
                        auto outputs = session.Run(samples[i]);
                        states[i] = outputs.status();
                        if (outputs.ok()) take(i, *std::move(outputs));
                      }
                    });
  for (const absl::Status& status : states) OPTFARM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

StepwiseRuns::StepwiseRuns(const graph::Graph& graph,
                           absl::Span<const graph::TensorName> inputs,
                           absl::Span<const std::vector<Tensor>> samples,
                           std::vector<RunStep> steps, int64_t memory_limit,
                           runtime::ThreadPool* pool)
    : graph_(graph),
      inputs_(inputs.begin(), inputs.end()),
      samples_(samples),
      steps_(std::move(steps)),
      memory_limit_(memory_limit),
      pool_(pool) {
  keeps_ = !HasBranches(graph_);
  PlanParts();
}

graph::TensorName StepwiseRuns::NameOf(Endpoint tensor) const {
  return {graph_.node(tensor.node).name(), tensor.port};
}

bool StepwiseRuns::IsFed(Endpoint tensor) const {
  return std::find(inputs_.begin(), inputs_.end(), NameOf(tensor)) !=
         inputs_.end();
}

template <typename Kept>
StepwiseRuns::Part StepwiseRuns::PartOf(const RunStep& step, const Kept& kept,
                                        const std::set<NodeId>& changed) const {
  Part part;
  std::set<Key> found_keys;
  std::set<NodeId> seen;
  std::vector<NodeId> open;
  const auto visit = [&](Endpoint tensor) {
    const Key key(tensor.node, tensor.port);
    if (kept.count(key) > 0) {
      if (found_keys.insert(key).second) part.sources.push_back(tensor);
    } else if (seen.insert(tensor.node).second) {
      if (changed.count(tensor.node) > 0) {
        part.constants.push_back(tensor.node);
      } else {
        open.push_back(tensor.node);
      }
    }
  };
  visit(step.wanted);
  while (!open.empty()) {
    const graph::Node& node = graph_.node(open.back());
    open.pop_back();
    for (const Endpoint& input : node.inputs()) visit(input);
    for (const NodeId control : node.control_inputs()) {
      if (seen.insert(control).second) open.push_back(control);
    }
  }
  return part;
}

void StepwiseRuns::PlanParts() {
  std::set<Key> kept;
  std::set<NodeId> changed;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const RunStep& step = steps_[i];
    parts_.push_back(PartOf(step, kept, changed));
    for (const Endpoint& source : parts_[i].sources) {
      last_use_[{source.node, source.port}] = i;
    }
    if (!keeps_) continue;
    if (!IsFed(step.wanted)) kept.insert({step.wanted.node, step.wanted.port});
    if (step.changes != graph::kNoNode) changed.insert(step.changes);
  }
}

absl::Status StepwiseRuns::MakeSession(const RunStep& step, Part* part) const {
  std::vector<graph::TensorName> feeds = inputs_;
  for (const Endpoint& source : part->sources) feeds.push_back(NameOf(source));
  for (const NodeId id : part->constants) feeds.push_back(NameOf({id, 0}));
  runtime::SessionOptions options;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(
      part->session,
      Session::Create(graph_, feeds, {NameOf(step.wanted)}, options));
  return absl::OkStatus();
}

absl::Status StepwiseRuns::MakeSessions() {
  std::vector<absl::Status> states(steps_.size());
  pool_->ParallelFor(static_cast<int64_t>(steps_.size()), 1,
                     [&](int64_t first, int64_t last) {
                       for (int64_t i = first; i < last; ++i) {
                         states[i] = MakeSession(steps_[i], &parts_[i]);
                       }
                     });
  for (const absl::Status& status : states) OPTFARM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::StatusOr<StepwiseRuns::Part> StepwiseRuns::NextPart() {
  if (keeps_ && next_ == 0) OPTFARM_RETURN_IF_ERROR(MakeSessions());
  Part part = std::move(parts_[next_]);
  const bool has_all = std::all_of(
      part.sources.begin(), part.sources.end(), [&](const Endpoint& source) {
        return kept_.count({source.node, source.port}) > 0;
      });
  // With the graph's constants as they are now.
  if (!has_all) part = PartOf(steps_[next_], kept_, {});
  if (part.session == nullptr) {
    OPTFARM_RETURN_IF_ERROR(MakeSession(steps_[next_], &part));
  }
  return part;
}

bool StepwiseRuns::IsRead(Endpoint tensor) const {
  const Key key(tensor.node, tensor.port);
  const auto last = last_use_.find(key);
  return last != last_use_.end() && last->second > next_ &&
         kept_.count(key) == 0;
}

void StepwiseRuns::DropUnused() {
  for (auto at = kept_.begin(); at != kept_.end();) {
    if (last_use_[at->first] > next_) {
      ++at;
      continue;
    }
    kept_bytes_ -= BytesOf(at->second);
    at = kept_.erase(at);
  }
}

absl::Status StepwiseRuns::RunNext(
    absl::FunctionRef<void(size_t sample, const Tensor& value)> take) {
  const RunStep& step = steps_[next_];
  OPTFARM_ASSIGN_OR_RETURN(const Part part, NextPart());
  std::vector<std::vector<Tensor>> fed(samples_.begin(), samples_.end());
  for (const Endpoint& source : part.sources) {
    const Values& values = kept_.at({source.node, source.port});
    for (size_t i = 0; i < fed.size(); ++i) fed[i].push_back(values[i]);
  }
  for (const NodeId id : part.constants) {
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value,
                             transforms::FloatConstValue(graph_.node(id)));
    for (std::vector<Tensor>& values : fed) values.push_back(value);
  }
  Values kept(samples_.size());
  const bool is_read = IsRead(step.wanted);
  // Of all samples so far. What does not fit is not held until the last.
  std::atomic<int64_t> bytes = 0;
  const int64_t room = memory_limit_ - kept_bytes_;
  OPTFARM_RETURN_IF_ERROR(RunAtOnce(
      *part.session, fed, pool_, [&](size_t i, std::vector<Tensor> outputs) {
        take(i, outputs[0]);
        if (is_read && (bytes += BytesOf(outputs)) <= room) {
          kept[i] = std::move(outputs[0]);
        }
      }));
  if (is_read && bytes <= room) {
    kept_bytes_ += bytes;
    kept_.emplace(Key(step.wanted.node, step.wanted.port), std::move(kept));
  }
  DropUnused();
  ++next_;
  return absl::OkStatus();
}

}  // namespace optfarm::optimize
