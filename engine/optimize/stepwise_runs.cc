#include "engine/optimize/stepwise_runs.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/status_macros.h"

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
    if (op == "Switch" || op == "RefSwitch" || op == "Merge" ||
        op == "RefMerge") {
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
  const bool keeps = !HasBranches(graph_);
  for (RunStep& step : steps_) {
    const bool is_fed = step.keep.node != graph::kNoNode &&
                        std::find(inputs_.begin(), inputs_.end(),
                                  NameOf(step.keep)) != inputs_.end();
    if (!keeps || is_fed) step.keep.node = graph::kNoNode;
  }
  PlanLastUses();
}

graph::TensorName StepwiseRuns::NameOf(Endpoint tensor) const {
  return {graph_.node(tensor.node).name(), tensor.port};
}

template <typename Kept>
std::vector<Endpoint> StepwiseRuns::Sources(Endpoint wanted,
                                            const Kept& kept) const {
  std::vector<Endpoint> found;
  std::set<Key> found_keys;
  std::set<NodeId> seen;
  std::vector<NodeId> open;
  const auto visit = [&](Endpoint tensor) {
    const Key key(tensor.node, tensor.port);
    if (kept.count(key) > 0) {
      if (found_keys.insert(key).second) found.push_back(tensor);
    } else if (seen.insert(tensor.node).second) {
      open.push_back(tensor.node);
    }
  };
  visit(wanted);
  while (!open.empty()) {
    const graph::Node& node = graph_.node(open.back());
    open.pop_back();
    for (const Endpoint& input : node.inputs()) visit(input);
    for (const NodeId control : node.control_inputs()) {
      if (seen.insert(control).second) open.push_back(control);
    }
  }
  return found;
}

void StepwiseRuns::PlanLastUses() {
  std::set<Key> kept;
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const Endpoint& source : Sources(steps_[i].wanted, kept)) {
      last_use_[{source.node, source.port}] = i;
    }
    if (steps_[i].keep.node != graph::kNoNode) {
      kept.insert({steps_[i].keep.node, steps_[i].keep.port});
    }
  }
}

void StepwiseRuns::Keep(Endpoint tensor, Values values) {
  const Key key(tensor.node, tensor.port);
  const auto last = last_use_.find(key);
  if (last == last_use_.end() || last->second <= next_) return;
  const int64_t bytes = BytesOf(values);
  if (kept_.count(key) > 0 || bytes > memory_limit_ - kept_bytes_) return;
  kept_bytes_ += bytes;
  kept_.emplace(key, std::move(values));
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
  const std::vector<Endpoint> sources = Sources(step.wanted, kept_);
  std::vector<graph::TensorName> feeds = inputs_;
  for (const Endpoint& source : sources) feeds.push_back(NameOf(source));
  std::vector<graph::TensorName> fetches = {NameOf(step.wanted)};
  const bool keeps = step.keep.node != graph::kNoNode;
  if (keeps) fetches.push_back(NameOf(step.keep));
  runtime::SessionOptions options;
  options.print = [](absl::string_view) {};
  OPTFARM_ASSIGN_OR_RETURN(const auto session,
                           Session::Create(graph_, feeds, fetches, options));
  std::vector<std::vector<Tensor>> fed(samples_.begin(), samples_.end());
  for (const Endpoint& source : sources) {
    const Values& values = kept_.at({source.node, source.port});
    for (size_t i = 0; i < fed.size(); ++i) fed[i].push_back(values[i]);
  }
  Values kept(keeps ? samples_.size() : 0);
  OPTFARM_RETURN_IF_ERROR(RunAtOnce(*session, fed, pool_,
                                    [&](size_t i, std::vector<Tensor> outputs) {
                                      take(i, outputs[0]);
                                      if (keeps)
                                        kept[i] = std::move(outputs[1]);
                                    }));
  if (keeps) Keep(step.keep, std::move(kept));
  DropUnused();
  ++next_;
  return absl::OkStatus();
}

}  // namespace optfarm::optimize
