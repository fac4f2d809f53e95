// Steps are made list by list: what runs outside of loops, and within it each
// loop's body in its place.

#include "engine/runtime/planner.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"

namespace optfarm::runtime {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;

std::string Describe(const Node& node) {
  return DescribeNode(node.name(), node.op());
}

absl::StatusOr<int> OutputCountOf(const Node& node) {
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat(Describe(node),
                     ": this op is not known to the runtime; give --outputs "
                     "before this node, or remove the op from the graph"));
  }
  absl::StatusOr<int> count = graph::OutputCount(*def, node.def());
  if (!count.ok()) return Annotate(count.status(), Describe(node));
  return count;
}

// The dtype of one tensor, DT_INVALID when the graph does not say.
DataType TypeOf(const Graph& graph, Endpoint e) {
  const Node& node = graph.node(e.node);
  const tensorflow::OpDef* def = graph::FindOpDef(node.op());
  if (def == nullptr) return tensorflow::DT_INVALID;
  const auto types = graph::OutputTypes(*def, node.def());
  if (!types.ok() || e.port >= static_cast<int>(types->size())) {
    return tensorflow::DT_INVALID;
  }
  return (*types)[e.port];
}

StepKind KindOf(absl::string_view op) {
  if (IsMerge(op)) return StepKind::kMerge;
  if (IsSwitch(op)) return StepKind::kSwitch;
  if (IsExit(op)) return StepKind::kExit;
  if (IsNextIteration(op) || op == "Identity" || op == "LoopCond" ||
      op == "StopGradient" || op == "PreventGradient" || op == "Snapshot" ||
      op == "PlaceholderWithDefault") {
    return StepKind::kForward;
  }
  return StepKind::kKernel;
}

class Planner {
 public:
  Planner(const Graph& graph, absl::Span<const graph::TensorName> feeds,
          absl::Span<const graph::TensorName> fetches,
          const SessionOptions& options)
      : graph_(graph), feeds_(feeds), fetches_(fetches), options_(options) {}

  absl::StatusOr<ExecutionPlan> Build();

 private:
  absl::Status ResolveEnds();
  absl::StatusOr<Endpoint> ResolveTensor(const graph::TensorName& name,
                                         absl::string_view role);
  void MarkNeeded();
  absl::Status EmitList(const std::vector<OrderedItem>& list);
  absl::Status EmitLoop(int loop);
  absl::Status AddNode(NodeId id);
  absl::Status AddConst(NodeId id);
  absl::Status AddImmutableConst(NodeId id);
  absl::Status AddEntry(NodeId id);
  absl::Status CheckArity(const Node& node) const;
  absl::Status AddInputs(NodeId id, Step* step);
  absl::Status AddOutputs(NodeId id, Step* step);
  int ReadVariable(const Step& reader, int slot, int loop,
                   absl::Span<const int> other_inputs);
  std::vector<int> ControlSlots(const Node& node);
  void CarryIntoMerge(NodeId merge, int input, Step* step);
  void AddFetches();

  int NewSlot(int loop);
  int SlotOf(Endpoint e);
  // The slot that is alive when the node ran.
  int RanSlotOf(NodeId id);
  // The loop in whose iterations the node's outputs are values.
  int ValueLoop(NodeId id) const;
  bool IsFed(Endpoint e) const { return fed_.contains(e); }

  const Graph& graph_;
  absl::Span<const graph::TensorName> feeds_;
  absl::Span<const graph::TensorName> fetches_;
  const SessionOptions& options_;
  // Node only, for "^name".
  std::vector<Endpoint> fetch_ends_;
  absl::flat_hash_map<Endpoint, int> fed_;
  absl::flat_hash_map<Endpoint, int> slots_;
  // Values between iterations: what NextIteration writes.
  absl::flat_hash_map<NodeId, int> ran_slots_;
  std::vector<bool> needed_;
  LoopNest nest_;
  ExecutionPlan plan_;
};

int Planner::ValueLoop(NodeId id) const {
  const int loop = nest_.loop_of[id];
  return loop != kNoLoop && IsExit(graph_.node(id).op())
             ? nest_.loops[loop].parent
             : loop;
}

int Planner::NewSlot(int loop) {
  plan_.initial.emplace_back();
  plan_.slot_loop.push_back(loop);
  return static_cast<int>(plan_.initial.size()) - 1;
}

int Planner::SlotOf(Endpoint e) {
  const auto it = slots_.find(e);
  if (it != slots_.end()) return it->second;
  const int slot = NewSlot(IsFed(e) ? kNoLoop : ValueLoop(e.node));
  slots_.emplace(e, slot);
  return slot;
}

int Planner::RanSlotOf(NodeId id) {
  const Node& node = graph_.node(id);
  const auto count = OutputCountOf(node);
  // A Switch runs though its output 0 may be dead.
  if (count.ok() && *count > 0 && !IsSwitch(node.op())) {
    return SlotOf({id, 0});
  }
  const auto [it, added] = ran_slots_.emplace(id, kNoSlot);
  if (added) it->second = NewSlot(ValueLoop(id));
  return it->second;
}

absl::StatusOr<Endpoint> Planner::ResolveTensor(const graph::TensorName& name,
                                                absl::string_view role) {
  absl::StatusOr<Endpoint> end = graph_.Resolve(name);
  if (!end.ok()) {
    return Annotate(end.status(),
                    absl::StrCat(role, " '", graph::ToString(name), "'"));
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
        absl::StrCat(role, " '", graph::ToString(name), "': ", Describe(node),
                     " has ", *count, " output(s), numbered from 0"));
  }
  return *end;
}

absl::Status Planner::ResolveEnds() {
  for (const graph::TensorName& name : feeds_) {
    if (name.is_control()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", graph::ToString(name),
                       "' is a control edge, not a tensor"));
    }
    OPTFARM_ASSIGN_OR_RETURN(Endpoint end, ResolveTensor(name, "input"));
    if (!fed_.emplace(end, static_cast<int>(plan_.feed_slots.size())).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", graph::ToString(name), "' is given more than once"));
    }
    plan_.feed_slots.push_back(SlotOf(end));
    plan_.feed_types.push_back(graph::BaseType(TypeOf(graph_, end)));
    plan_.feed_names.push_back(graph::ToString(name));
  }
  for (const graph::TensorName& name : fetches_) {
    plan_.fetch_names.push_back(graph::ToString(name));
    if (name.is_control()) {
      absl::StatusOr<NodeId> id = graph_.Get(name.node);
      if (!id.ok()) return Annotate(id.status(), "operation to run");
      fetch_ends_.push_back({*id, graph::kControlPort});
      continue;
    }
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
  if (!value.ok()) return Annotate(value.status(), Describe(node));
  plan_.initial[SlotOf({id, 0})] = *std::move(value);
  return absl::OkStatus();
}

absl::Status Planner::AddImmutableConst(NodeId id) {
  const Node& node = graph_.node(id);
  absl::StatusOr<Tensor> value =
      ReadImmutableConst(node.def(), options_.find_region);
  if (!value.ok()) return Annotate(value.status(), Describe(node));
  plan_.initial[SlotOf({id, 0})] = *std::move(value);
  return absl::OkStatus();
}

std::vector<int> Planner::ControlSlots(const Node& node) {
  std::vector<int> slots;
  for (NodeId c : node.control_inputs()) {
    const Node& source = graph_.node(c);
    const bool is_present =
        source.op() == "Const" && source.control_inputs().empty();
    if (is_present || IsFed({c, 0})) continue;
    slots.push_back(RanSlotOf(c));
  }
  return slots;
}

absl::Status Planner::CheckArity(const Node& node) const {
  absl::StatusOr<int> arity =
      graph::InputCount(*graph::FindOpDef(node.op()), node.def());
  if (!arity.ok()) return Annotate(arity.status(), Describe(node));
  if (*arity != static_cast<int>(node.inputs().size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(node), " has ", node.inputs().size(),
                     " inputs, the op takes ", *arity));
  }
  for (const Endpoint& e : node.inputs()) {
    if (IsFed(e)) continue;
    OPTFARM_ASSIGN_OR_RETURN(const int count,
                             OutputCountOf(graph_.node(e.node)));
    if (e.port >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(node), " reads '", graph_.NameOf(e),
                       "', but that node has only ", count, " output(s)"));
    }
  }
  return absl::OkStatus();
}

// A value of this iteration for the next: the two have slots of their own,
// because the Merge may come after the NextIteration.
void Planner::CarryIntoMerge(NodeId merge, int input, Step* step) {
  const int loop = nest_.loop_of[merge];
  const int next = SlotOf(graph_.node(merge).inputs()[input]);
  const int current = NewSlot(loop);
  plan_.loops[loop].carries.push_back({next, current});
  step->inputs.push_back(current);
}

// A step of its own right before the reader, which takes the value that the
// variable has then.
int Planner::ReadVariable(const Step& reader, int slot, int loop,
                          absl::Span<const int> other_inputs) {
  Step step;
  step.kind = StepKind::kReadVariable;
  step.is_pure = false;
  step.name = reader.name;
  step.op = reader.op;
  step.inputs = {slot};
  step.controls = reader.controls;
  // A reader that does not run does not read: the variable may have no value.
  step.controls.insert(step.controls.end(), other_inputs.begin(),
                       other_inputs.end());
  step.outputs = {NewSlot(loop)};
  const int value = step.outputs[0];
  plan_.steps.push_back(std::move(step));
  return value;
}

absl::Status Planner::AddInputs(NodeId id, Step* step) {
  const Node& node = graph_.node(id);
  const auto types =
      graph::InputTypes(*graph::FindOpDef(node.op()), node.def());
  std::vector<size_t> read;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const Endpoint e = node.inputs()[i];
    if (!IsFed(e) &&
        (IsMerge(node.op()) && IsNextIteration(graph_.node(e.node).op()))) {
      CarryIntoMerge(id, static_cast<int>(i), step);
      continue;
    }
    if (!IsFed(e) && IsNextIteration(graph_.node(e.node).op())) {
      return absl::InvalidArgumentError(
          absl::StrCat(Describe(node), " reads '", graph_.NameOf(e),
                       "': the next iteration begins at a Merge only"));
    }
    const bool wants_reference = types.ok() && graph::IsRefType((*types)[i]);
    if (!IsFed(e) && !wants_reference && graph::IsRefType(TypeOf(graph_, e))) {
      read.push_back(step->inputs.size());
    }
    step->inputs.push_back(SlotOf(e));
  }
  const std::vector<int> inputs = step->inputs;
  for (size_t i : read) {
    // A Merge runs when one of its inputs is alive, everything else when all.
    step->inputs[i] = ReadVariable(
        *step, inputs[i], nest_.loop_of[id],
        IsMerge(node.op()) ? absl::Span<const int>() : absl::MakeSpan(inputs));
  }
  return absl::OkStatus();
}

absl::Status Planner::AddOutputs(NodeId id, Step* step) {
  const Node& node = graph_.node(id);
  OPTFARM_ASSIGN_OR_RETURN(const int outputs, OutputCountOf(node));
  for (int i = 0; i < outputs; ++i) {
    // A fed output keeps the fed value; the node may run for its others.
    step->outputs.push_back(IsFed({id, i}) ? kNoSlot : SlotOf({id, i}));
  }
  const bool is_waited_for =
      std::any_of(node.uses().begin(), node.uses().end(),
                  [](const graph::Use& use) { return use.is_control(); });
  if (is_waited_for && (outputs == 0 || IsSwitch(node.op()))) {
    step->ran = RanSlotOf(id);
  }
  const int loop = nest_.loop_of[id];
  if (loop != kNoLoop && IsExit(node.op()) && step->outputs[0] != kNoSlot) {
    plan_.loops[loop].exits.push_back(step->outputs[0]);
  }
  return absl::OkStatus();
}

absl::Status Planner::AddNode(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.op() == "Const" && node.control_inputs().empty()) {
    return AddConst(id);
  }
  if (node.op() == "ImmutableConst") return AddImmutableConst(id);
  OPTFARM_RETURN_IF_ERROR(OutputCountOf(node).status());
  const KernelEntry* entry = AllKernels().Find(node.op());
  if (entry == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        Describe(node),
        ": the runtime has no kernel for this op; give --outputs before "
        "this node, or remove the op from the graph"));
  }
  OPTFARM_RETURN_IF_ERROR(CheckArity(node));
  if (IsEnter(node.op())) return absl::OkStatus();  // The loop's beginning.
  Step step;
  step.kind = KindOf(node.op());
  step.is_pure = entry->is_pure;
  step.ignores_dead_controls = node.op() == "ControlTrigger";
  step.name = node.name();
  step.op = node.op();
  if (step.kind == StepKind::kKernel) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = entry->Make(node.def());
    if (!kernel.ok()) return Annotate(kernel.status(), Describe(node));
    step.kernel = *std::move(kernel);
  }
  step.controls = ControlSlots(node);
  OPTFARM_RETURN_IF_ERROR(AddInputs(id, &step));
  OPTFARM_RETURN_IF_ERROR(AddOutputs(id, &step));
  plan_.steps.push_back(std::move(step));
  return absl::OkStatus();
}

absl::Status Planner::AddEntry(NodeId id) {
  const Node& node = graph_.node(id);
  OPTFARM_RETURN_IF_ERROR(CheckArity(node));
  absl::StatusOr<bool> is_constant =
      graph::GetBoolOr(node.def(), "is_constant", false);
  if (!is_constant.ok()) return Annotate(is_constant.status(), Describe(node));
  const int loop = nest_.loop_of[id];
  Step reader;
  reader.name = node.name();
  reader.op = node.op();
  LoopPlan::Entry entry;
  entry.is_constant = *is_constant;
  entry.controls = ControlSlots(node);
  reader.controls = entry.controls;
  const Endpoint from = node.inputs()[0];
  entry.from = SlotOf(from);
  const bool is_reference =
      !IsFed(from) && graph::IsRefType(TypeOf(graph_, from));
  if (is_reference && node.op() != "RefEnter") {
    entry.from = ReadVariable(reader, entry.from, nest_.loops[loop].parent, {});
  }
  if (!IsFed({id, 0})) {
    // A constant is the outer value itself: no copy, and it can be folded.
    const bool is_alias = entry.is_constant && entry.controls.empty();
    if (is_alias) slots_[{id, 0}] = entry.from;
    entry.to = SlotOf({id, 0});
    if (entry.is_constant && !is_alias) {
      plan_.slot_loop[entry.to] = nest_.loops[loop].parent;
    }
  }
  plan_.loops[loop].entries.push_back(std::move(entry));
  return absl::OkStatus();
}

absl::Status Planner::EmitLoop(int loop) {
  const Loop& body = nest_.loops[loop];
  plan_.loops[loop].parent = body.parent;
  plan_.loops[loop].frame = body.frame;
  for (const OrderedItem& item : body.body) {
    if (item.node != graph::kNoNode && IsEnter(graph_.node(item.node).op())) {
      OPTFARM_RETURN_IF_ERROR(AddEntry(item.node));
    }
  }
  Step begin;
  begin.kind = StepKind::kLoopBegin;
  begin.loop = loop;
  begin.name = body.frame;
  begin.op = "Enter";
  for (const LoopPlan::Entry& entry : plan_.loops[loop].entries) {
    begin.inputs.push_back(entry.from);
    begin.controls.insert(begin.controls.end(), entry.controls.begin(),
                          entry.controls.end());
  }
  plan_.steps.push_back(std::move(begin));
  OPTFARM_RETURN_IF_ERROR(EmitList(body.body));
  Step end;
  end.kind = StepKind::kLoopEnd;
  end.loop = loop;
  end.name = body.frame;
  end.op = "NextIteration";
  plan_.steps.push_back(std::move(end));
  return absl::OkStatus();
}

// The depth of recursion is that of the loops, at most kMaxLoopDepth.
absl::Status Planner::EmitList(const std::vector<OrderedItem>& list) {
  for (const OrderedItem& item : list) {
    OPTFARM_RETURN_IF_ERROR(item.loop == kNoLoop ? AddNode(item.node)
                                                 : EmitLoop(item.loop));
  }
  return absl::OkStatus();
}

// A value within a loop is fetched as its last living one: a copy of it goes
// out of the loop like an Exit's.
void Planner::AddFetches() {
  std::vector<std::pair<int, Step>> taps;
  for (const Endpoint& e : fetch_ends_) {
    if (e.port == graph::kControlPort) {
      plan_.fetch_slots.push_back(kNoSlot);
      continue;
    }
    const int slot = SlotOf(e);
    const int loop = plan_.slot_loop[slot];
    if (loop == kNoLoop) {
      plan_.fetch_slots.push_back(slot);
      continue;
    }
    const int out = NewSlot(kNoLoop);
    plan_.fetch_slots.push_back(out);
    LoopPlan* outermost = &plan_.loops[loop];
    while (outermost->parent != kNoLoop) {
      outermost = &plan_.loops[outermost->parent];
    }
    outermost->exits.push_back(out);
    Step tap;
    tap.kind = StepKind::kExit;
    tap.is_pure = false;
    tap.name = graph_.NameOf(e);
    tap.op = "Exit";
    tap.inputs = {slot};
    tap.outputs = {out};
    taps.emplace_back(slot, std::move(tap));
  }
  if (taps.empty()) return;
  // Each goes right behind the step that makes the value.
  std::vector<Step> steps;
  const auto add_taps = [&](int slot) {
    for (auto& [from, tap] : taps) {
      if (from == slot && !tap.inputs.empty()) steps.push_back(std::move(tap));
    }
  };
  for (Step& step : plan_.steps) {
    const std::vector<int> outputs = step.outputs;
    const int loop = step.kind == StepKind::kLoopBegin ? step.loop : kNoLoop;
    steps.push_back(std::move(step));
    for (int slot : outputs) add_taps(slot);
    if (loop == kNoLoop) continue;
    for (const auto& entry : plan_.loops[loop].entries) add_taps(entry.to);
  }
  plan_.steps = std::move(steps);
}

absl::StatusOr<ExecutionPlan> Planner::Build() {
  OPTFARM_RETURN_IF_ERROR(ResolveEnds());
  MarkNeeded();
  OPTFARM_ASSIGN_OR_RETURN(
      nest_,
      FindLoops({graph_, needed_, [&](Endpoint e) { return IsFed(e); }}));
  plan_.loops.resize(nest_.loops.size());
  OPTFARM_RETURN_IF_ERROR(EmitList(nest_.top));
  AddFetches();
  NumberLoopSteps(&plan_);
  plan_.token = Tensor::Scalar<bool>(true);
  size_t widest_merge = 0;
  for (const Step& step : plan_.steps) {
    if (step.kind == StepKind::kMerge) {
      widest_merge = std::max(widest_merge, step.inputs.size());
    }
  }
  for (size_t i = 0; i < widest_merge; ++i) {
    plan_.merge_indices.push_back(
        Tensor::Scalar<int32_t>(static_cast<int32_t>(i)));
  }
  return std::move(plan_);
}

}  // namespace

absl::StatusOr<ExecutionPlan> MakePlan(
    const Graph& graph, absl::Span<const graph::TensorName> feeds,
    absl::Span<const graph::TensorName> fetches,
    const SessionOptions& options) {
  return Planner(graph, feeds, fetches, options).Build();
}

}  // namespace optfarm::runtime
