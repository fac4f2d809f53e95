// The executor. A plan is a list of steps in execution order over numbered
// slots, one slot for each tensor; a run walks the list once. A step whose
// input is dead (cut off by a Switch) makes its outputs dead and does not run;
// Merge runs when one input lives. Loops need frames and are refused at load.

#include "engine/runtime/session.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/dataflow_order.h"
#include "engine/graph/op_defs.h"
#include "engine/runtime/kernel.h"

namespace optfarm::runtime {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;

constexpr int kNoSlot = -1;

// One node of the plan.
struct Step {
  std::string name;
  std::string op;
  std::unique_ptr<Kernel> kernel;
  bool is_pure = true;
  bool is_merge = false;
  // Slots read, in the order of the arguments.
  std::vector<int> inputs;
  // Slots written, one for each output that the op has.
  std::vector<int> outputs;
  // Slots of control predecessors' liveness.
  std::vector<int> controls;
  // True for inputs that no later step reads: the step may reuse the buffer.
  std::vector<bool> last_use;
  // Slots nobody needs after this step.
  std::vector<int> release;
};

std::string Describe(absl::string_view name, absl::string_view op) {
  return absl::StrCat("node '", name, "' (op ", op, ")");
}

bool IsLoopOp(absl::string_view op) {
  return op == "Enter" || op == "RefEnter" || op == "Exit" || op == "RefExit" ||
         op == "NextIteration" || op == "RefNextIteration" || op == "LoopCond";
}

// The kernels are compiled for one level of processor (OPTFARM_CPU_BASELINE).
absl::Status CheckProcessor() {
#if defined(__AVX2__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return absl::FailedPreconditionError(
        "this build needs a processor with AVX2 and FMA; build with "
        "-DOPTFARM_CPU_BASELINE=x86-64 for older ones");
  }
#endif
  return absl::OkStatus();
}

void PrintToStderr(absl::string_view line) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace

struct Session::Plan {
  std::vector<Step> steps;
  // Values present before the first step; constants and folded results.
  std::vector<Tensor> initial;
  std::vector<int> feed_slots;
  std::vector<DataType> feed_types;
  std::vector<std::string> feed_names;
  std::vector<int> fetch_slots;
  std::vector<std::string> fetch_names;
  // Slots whose value outlives its step's last reader (fetches, constants).
  std::vector<bool> keep;
  std::unique_ptr<ThreadPool> pool;
  std::function<void(absl::string_view)> print;
  int64_t constant_bytes = 0;

  absl::Status RunStep(const Step& step, std::vector<Tensor>* slots) const;
  void FoldConstants();
  void PlanLifetimes();
};

namespace {

// Turns the part of a graph that the fetches need into steps.
class Planner {
 public:
  Planner(const Graph& graph, absl::Span<const graph::TensorName> feeds,
          absl::Span<const graph::TensorName> fetches,
          const SessionOptions& options)
      : graph_(graph), feeds_(feeds), fetches_(fetches), options_(options) {}

  absl::Status Build();

  std::vector<Step> steps;
  std::vector<Tensor> initial;
  std::vector<int> feed_slots, fetch_slots;
  std::vector<DataType> feed_types;

 private:
  absl::Status ResolveEnds();
  absl::StatusOr<Endpoint> ResolveTensor(const graph::TensorName& name,
                                         absl::string_view role);
  void MarkNeeded();
  absl::Status AddNode(NodeId id);
  absl::Status AddConst(NodeId id);
  absl::Status AddImmutableConst(NodeId id);
  absl::StatusOr<int> OutputCountOf(const Node& node) const;
  int SlotOf(Endpoint e);

  bool IsFed(Endpoint e) const { return fed_.contains(e); }

  const Graph& graph_;
  absl::Span<const graph::TensorName> feeds_;
  absl::Span<const graph::TensorName> fetches_;
  const SessionOptions& options_;
  std::vector<Endpoint> fetch_ends_;
  absl::flat_hash_map<Endpoint, int> fed_;
  absl::flat_hash_map<Endpoint, int> slots_;
  std::vector<bool> needed_;
};

int Planner::SlotOf(Endpoint e) {
  const auto [it, added] = slots_.emplace(e, static_cast<int>(initial.size()));
  if (added) initial.emplace_back();
  return it->second;
}

absl::StatusOr<int> Planner::OutputCountOf(const Node& node) const {
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(Describe(node.name(), node.op()),
                     ": this op is not known to the runtime"));
  }
  absl::StatusOr<int> count = graph::OutputCount(*def, node.def());
  if (!count.ok()) {
    return Annotate(count.status(), Describe(node.name(), node.op()));
  }
  return count;
}

absl::StatusOr<Endpoint> Planner::ResolveTensor(const graph::TensorName& name,
                                                absl::string_view role) {
  absl::StatusOr<Endpoint> end = graph_.Resolve(name);
  if (!end.ok()) {
    return Annotate(end.status(),
                    absl::StrCat(role, " '", graph::ToString(name), "'"));
  }
  if (name.is_control()) {
    return absl::InvalidArgumentError(
        absl::StrCat(role, " '", graph::ToString(name),
                     "' is a control edge, not a tensor"));
  }
  const Node& node = graph_.node(end->node);
  absl::StatusOr<int> count = OutputCountOf(node);
  if (!count.ok() && absl::IsUnimplemented(count.status())) {
    // A fed tensor of an unknown op is fine: the op will not run.
    return *end;
  }
  if (!count.ok()) return count.status();
  if (end->port >= *count) {
    return absl::InvalidArgumentError(
        absl::StrCat(role, " '", graph::ToString(name),
                     "': ", Describe(node.name(), node.op()), " has ", *count,
                     " output(s), numbered from 0"));
  }
  return *end;
}

absl::Status Planner::ResolveEnds() {
  for (const graph::TensorName& name : feeds_) {
    OPTFARM_ASSIGN_OR_RETURN(Endpoint end, ResolveTensor(name, "input"));
    if (!fed_.emplace(end, static_cast<int>(feed_slots.size())).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", graph::ToString(name), "' is given more than once"));
    }
    feed_slots.push_back(SlotOf(end));
    DataType type = tensorflow::DT_INVALID;
    const Node& node = graph_.node(end.node);
    if (const tensorflow::OpDef* def = graph::FindOpDef(node.op())) {
      const auto types = graph::OutputTypes(*def, node.def());
      if (types.ok() && end.port < static_cast<int>(types->size())) {
        type = graph::BaseType((*types)[end.port]);
      }
    }
    feed_types.push_back(type);
  }
  for (const graph::TensorName& name : fetches_) {
    OPTFARM_ASSIGN_OR_RETURN(Endpoint end, ResolveTensor(name, "output"));
    fetch_ends_.push_back(end);
  }
  return absl::OkStatus();
}

void Planner::MarkNeeded() {
  needed_.assign(graph_.id_limit(), false);
  std::vector<NodeId> stack;
  const auto want = [&](Endpoint e) {
    if (!IsFed(e)) stack.push_back(e.node);
  };
  for (const Endpoint& e : fetch_ends_) want(e);
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (needed_[id]) continue;
    needed_[id] = true;
    for (const Endpoint& e : graph_.node(id).inputs()) want(e);
    for (NodeId c : graph_.node(id).control_inputs()) {
      // Waiting for a placeholder is waiting for what is fed.
      if (graph_.node(c).op() != "Placeholder" || !IsFed({c, 0})) {
        stack.push_back(c);
      }
    }
  }
}

absl::Status Planner::AddConst(NodeId id) {
  const Node& node = graph_.node(id);
  absl::StatusOr<const tensorflow::TensorProto*> proto =
      graph::GetTensor(node.def(), "value");
  if (!proto.ok()) return proto.status();
  absl::StatusOr<Tensor> value = Tensor::FromProto(**proto);
  if (!value.ok()) {
    return Annotate(value.status(), Describe(node.name(), node.op()));
  }
  initial[SlotOf({id, 0})] = *std::move(value);
  return absl::OkStatus();
}

absl::Status Planner::AddImmutableConst(NodeId id) {
  const Node& node = graph_.node(id);
  absl::StatusOr<Tensor> value =
      ReadImmutableConst(node.def(), options_.find_region);
  if (!value.ok()) {
    return Annotate(value.status(), Describe(node.name(), node.op()));
  }
  initial[SlotOf({id, 0})] = *std::move(value);
  return absl::OkStatus();
}

absl::Status Planner::AddNode(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.op() == "Const" && node.control_inputs().empty()) {
    return AddConst(id);
  }
  if (node.op() == "ImmutableConst") return AddImmutableConst(id);
  const std::string what = Describe(node.name(), node.op());
  if (IsLoopOp(node.op())) {
    return absl::UnimplementedError(
        absl::StrCat(what, ": the runtime does not run loops yet"));
  }
  const KernelEntry* entry = AllKernels().Find(node.op());
  if (entry == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        what,
        ": the runtime has no kernel for this op; give --outputs before "
        "this node, or remove the op from the graph"));
  }
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = entry->Make(node.def());
  if (!kernel.ok()) return Annotate(kernel.status(), what);
  OPTFARM_ASSIGN_OR_RETURN(const int outputs, OutputCountOf(node));
  absl::StatusOr<int> arity =
      graph::InputCount(*graph::FindOpDef(node.op()), node.def());
  if (!arity.ok()) return Annotate(arity.status(), what);
  if (*arity != static_cast<int>(node.inputs().size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " has ", node.inputs().size(), " inputs, the op takes ", *arity));
  }
  Step step;
  step.name = node.name();
  step.op = node.op();
  step.kernel = *std::move(kernel);
  step.is_pure = entry->is_pure;
  step.is_merge = node.op() == "Merge";
  for (const Endpoint& e : node.inputs()) {
    if (!IsFed(e)) {
      OPTFARM_ASSIGN_OR_RETURN(const int count,
                               OutputCountOf(graph_.node(e.node)));
      if (e.port >= count) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, " reads '", graph_.NameOf(e),
                         "', but that node has only ", count, " output(s)"));
      }
    }
    step.inputs.push_back(SlotOf(e));
  }
  // A node without outputs (NoOp, Assert) still has one slot that tells its
  // control successors whether it ran.
  for (int i = 0; i < std::max(outputs, 1); ++i) {
    // A fed output keeps the fed value; the node may run for its others.
    step.outputs.push_back(IsFed({id, i}) ? kNoSlot : SlotOf({id, i}));
  }
  for (NodeId c : node.control_inputs()) {
    const Endpoint e{c, 0};
    if (graph_.node(c).op() == "Const" || IsFed(e)) continue;
    step.controls.push_back(SlotOf(e));
  }
  steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status Planner::Build() {
  OPTFARM_RETURN_IF_ERROR(ResolveEnds());
  MarkNeeded();
  OPTFARM_ASSIGN_OR_RETURN(std::vector<NodeId> order,
                           graph::DataflowOrder(graph_));
  for (NodeId id : order) {
    if (needed_[id]) OPTFARM_RETURN_IF_ERROR(AddNode(id));
  }
  for (const Endpoint& e : fetch_ends_) fetch_slots.push_back(SlotOf(e));
  return absl::OkStatus();
}

}  // namespace

absl::Status Session::Plan::RunStep(const Step& step,
                                    std::vector<Tensor>* slots) const {
  bool dead = false;
  for (int slot : step.controls) dead |= !(*slots)[slot].has_value();
  absl::InlinedVector<Tensor, 6> inputs(step.inputs.size());
  bool any_alive = step.inputs.empty();
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& value = (*slots)[step.inputs[i]];
    any_alive |= value.has_value();
    if (!step.is_merge) dead |= !value.has_value();
    if (step.last_use.empty() || !step.last_use[i]) {
      inputs[i] = value;
    } else {
      inputs[i] = std::move(value);
      value = Tensor();
    }
  }
  absl::InlinedVector<Tensor, 4> outputs(step.outputs.size());
  if (!dead && any_alive) {
    KernelContext context(absl::MakeSpan(inputs), absl::MakeSpan(outputs),
                          pool.get(), &print);
    const absl::Status status = step.kernel->Compute(&context);
    if (!status.ok()) return Annotate(status, Describe(step.name, step.op));
    if (step.op != "Switch" && !outputs[0].has_value()) {
      // Ran without making a value: alive for control successors.
      outputs[0] = Tensor::Scalar<bool>(true);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (step.outputs[i] != kNoSlot) {
      (*slots)[step.outputs[i]] = std::move(outputs[i]);
    }
  }
  return absl::OkStatus();
}

// Runs ahead what depends on constants alone. A step that fails here is left
// for the run, where it may turn out to be dead.
void Session::Plan::FoldConstants() {
  std::vector<bool> known(initial.size());
  for (size_t i = 0; i < initial.size(); ++i) known[i] = initial[i].has_value();
  std::vector<Step> left;
  for (Step& step : steps) {
    bool fold = step.is_pure && step.controls.empty() && step.op != "Switch" &&
                !step.is_merge && step.op != "Placeholder" &&
                step.op != "PlaceholderWithDefault";
    for (int slot : step.inputs) fold = fold && known[slot];
    for (int slot : step.outputs) fold = fold && slot != kNoSlot;
    if (fold && RunStep(step, &initial).ok()) {
      for (int slot : step.outputs) known[slot] = initial[slot].has_value();
      continue;
    }
    for (int slot : step.outputs) {
      if (slot != kNoSlot) initial[slot] = Tensor();
    }
    left.push_back(std::move(step));
  }
  steps = std::move(left);
  // Weights in a form that only a folded step read are not needed any more.
  std::vector<bool> read(initial.size(), false);
  for (const Step& step : steps) {
    for (int slot : step.inputs) read[slot] = true;
    for (int slot : step.controls) read[slot] = true;
  }
  for (int slot : fetch_slots) read[slot] = true;
  for (size_t i = 0; i < initial.size(); ++i) {
    if (!read[i]) initial[i] = Tensor();
  }
}

void Session::Plan::PlanLifetimes() {
  keep.assign(initial.size(), false);
  for (size_t i = 0; i < initial.size(); ++i) {
    keep[i] = initial[i].has_value();
    constant_bytes += initial[i].TotalBytes();
  }
  for (int slot : fetch_slots) keep[slot] = true;
  // Walking backwards, the first reader met is the last one.
  std::vector<bool> read_later(initial.size(), false);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    for (int slot : step->outputs) {
      if (slot != kNoSlot && !keep[slot] && !read_later[slot]) {
        step->release.push_back(slot);
      }
    }
    for (int slot : step->controls) {
      if (!keep[slot] && !read_later[slot]) step->release.push_back(slot);
      read_later[slot] = true;
    }
    step->last_use.assign(step->inputs.size(), false);
    for (size_t i = 0; i < step->inputs.size(); ++i) {
      const int slot = step->inputs[i];
      if (!keep[slot] && !read_later[slot]) {
        // The same tensor twice: only its last argument may take the buffer.
        const bool again =
            std::count(step->inputs.begin() + i + 1, step->inputs.end(), slot);
        step->last_use[i] = !again;
      }
    }
    for (int slot : step->inputs) read_later[slot] = true;
  }
}

Session::Session(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
Session::~Session() = default;

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const Graph& graph, absl::Span<const graph::TensorName> feeds,
    absl::Span<const graph::TensorName> fetches,
    const SessionOptions& options) {
  OPTFARM_RETURN_IF_ERROR(CheckProcessor());
  if (options.threads < 1 || options.threads > 1024) {
    return absl::InvalidArgumentError(absl::StrCat(
        "number of threads must be 1 to 1024, got ", options.threads));
  }
  Planner planner(graph, feeds, fetches, options);
  OPTFARM_RETURN_IF_ERROR(planner.Build());
  auto plan = std::make_unique<Plan>();
  plan->steps = std::move(planner.steps);
  plan->initial = std::move(planner.initial);
  plan->feed_slots = std::move(planner.feed_slots);
  plan->feed_types = std::move(planner.feed_types);
  plan->fetch_slots = std::move(planner.fetch_slots);
  for (const auto& name : feeds) {
    plan->feed_names.push_back(graph::ToString(name));
  }
  for (const auto& name : fetches) {
    plan->fetch_names.push_back(graph::ToString(name));
  }
  plan->pool = std::make_unique<ThreadPool>(options.threads);
  plan->print = options.print ? options.print : PrintToStderr;
  if (options.fold_constants) plan->FoldConstants();
  plan->PlanLifetimes();
  return std::unique_ptr<Session>(new Session(std::move(plan)));
}

absl::StatusOr<std::vector<Tensor>> Session::Run(
    absl::Span<const Tensor> inputs, RunTrace* trace) const {
  const Plan& plan = *plan_;
  if (inputs.size() != plan.feed_slots.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("running the graph: ", inputs.size(), " inputs given, ",
                     plan.feed_slots.size(), " expected"));
  }
  std::vector<Tensor> slots = plan.initial;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].has_value() ||
        (plan.feed_types[i] != tensorflow::DT_INVALID &&
         inputs[i].dtype() != plan.feed_types[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("running the graph: input '", plan.feed_names[i],
                       "' is ", graph::DataTypeName(plan.feed_types[i]),
                       ", got ", inputs[i].DebugString(0)));
    }
    slots[plan.feed_slots[i]] = inputs[i];
  }
  const absl::Time run_start = trace != nullptr ? absl::Now() : absl::Time();
  for (const Step& step : plan.steps) {
    const absl::Time start = trace != nullptr ? absl::Now() : absl::Time();
    OPTFARM_RETURN_IF_ERROR(plan.RunStep(step, &slots));
    if (trace != nullptr) {
      NodeTiming timing{step.name,           step.op, start - run_start,
                        absl::Now() - start, 0,       {}};
      for (int slot : step.outputs) {
        if (slot == kNoSlot) continue;
        timing.output_bytes += slots[slot].TotalBytes();
        timing.outputs.push_back({slots[slot].dtype(), slots[slot].shape()});
      }
      trace->nodes.push_back(std::move(timing));
    }
    for (int slot : step.release) slots[slot] = Tensor();
  }
  std::vector<Tensor> results;
  results.reserve(plan.fetch_slots.size());
  for (size_t i = 0; i < plan.fetch_slots.size(); ++i) {
    if (!slots[plan.fetch_slots[i]].has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("output '", plan.fetch_names[i],
                       "' has no value: a Switch cut it off in this run"));
    }
    results.push_back(slots[plan.fetch_slots[i]]);
  }
  return results;
}

int Session::step_count() const {
  return static_cast<int>(plan_->steps.size());
}

int64_t Session::constant_bytes() const { return plan_->constant_bytes; }

}  // namespace optfarm::runtime
