// Steps are made list by list: what runs outside of loops, and within it each
// loop's body in its place.

#include "engine/runtime/plan/planner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"
#include "engine/runtime/plan/graph_ends.h"
#include "engine/runtime/plan/plan_constants.h"
#include "engine/runtime/plan/plan_slots.h"
#include "engine/runtime/reference/catalog.h"

namespace optfarm::runtime {
namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeId;

std::string Describe(const Node& node) {
  return DescribeNode(node.name(), node.op());
}

StepKind KindOf(absl::string_view op) {
  const graph::OpRow& row = graph::RowOf(op);
  switch (row.role) {
    case graph::OpRole::kMerge:
      return StepKind::kMerge;
    case graph::OpRole::kSwitch:
      return StepKind::kSwitch;
    case graph::OpRole::kExit:
      return StepKind::kExit;
    default:
      return row.flow == graph::ValueFlow::kForwarding ? StepKind::kForward
                                                       : StepKind::kKernel;
  }
}

class Planner {
 public:
  Planner(const Graph& graph, const PlanRequest& request)
      : graph_(graph), request_(request), slots_(graph, ends_, nest_, &plan_) {}
  // `slots_` knows where the others are.
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  absl::StatusOr<ExecutionPlan> Build();

 private:
  absl::Status EmitList(const std::vector<OrderedItem>& list);
  absl::Status EmitLoop(int loop);
  absl::Status AddNode(NodeId id);
  absl::StatusOr<std::unique_ptr<Kernel>> KernelOf(NodeId id,
                                                   const KernelEntry& entry);
  absl::Status AddEntry(NodeId id);
  absl::Status CheckArity(const Node& node) const;
  absl::Status AddInputs(NodeId id, Step* step);
  absl::Status AddOutputs(NodeId id, Step* step);
  int ReadVariable(const Step& reader, int slot, int loop,
                   absl::Span<const int> other_inputs);
  void CarryIntoMerge(NodeId merge, int input, Step* step);
  void AddFetches();

  bool IsFed(Endpoint e) const { return slots_.IsFed(e); }

  const Graph& graph_;
  const PlanRequest& request_;
  GraphEnds ends_;
  LoopNest nest_;
  ExecutionPlan plan_;
  PlanSlots slots_;
};

absl::StatusOr<std::unique_ptr<Kernel>> Planner::KernelOf(
    NodeId id, const KernelEntry& entry) {
  const Node& node = graph_.node(id);
  if (graph::IsConst(node.op())) {
    OPTFARM_ASSIGN_OR_RETURN(Tensor value,
                             ConstValue(graph_, id, request_, &plan_));
    return MakeKernel([value](KernelContext* context) {
      context->SetOutput(0, value);
      return absl::OkStatus();
    });
  }
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = entry.Make(node.def());
  if (!kernel.ok()) return Annotate(kernel.status(), Describe(node));
  return kernel;
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
  const int next = slots_.Of(graph_.node(merge).inputs()[input]);
  const int current = slots_.New(loop);
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
  step.is_helper = true;
  step.name = reader.name;
  step.op = reader.op;
  step.inputs = {slot};
  step.controls = reader.controls;
  // A reader that does not run does not read: the variable may have no value.
  step.controls.insert(step.controls.end(), other_inputs.begin(),
                       other_inputs.end());
  step.outputs = {slots_.New(loop)};
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
    step->inputs.push_back(slots_.Of(e));
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
    step->outputs.push_back(IsFed({id, i}) ? kNoSlot : slots_.Of({id, i}));
  }
  const bool is_waited_for =
      std::any_of(node.uses().begin(), node.uses().end(),
                  [](const graph::Use& use) { return use.is_control(); });
  if (is_waited_for && (outputs == 0 || IsSwitch(node.op()))) {
    step->ran = slots_.OfRun(id);
  }
  const int loop = nest_.loop_of[id];
  if (loop != kNoLoop && IsExit(node.op()) && step->outputs[0] != kNoSlot) {
    plan_.loops[loop].exits.push_back(step->outputs[0]);
  }
  return absl::OkStatus();
}

absl::Status Planner::AddNode(NodeId id) {
  const Node& node = graph_.node(id);
  if (graph::IsConst(node.op()) && node.control_inputs().empty()) {
    OPTFARM_ASSIGN_OR_RETURN(plan_.initial[slots_.Of({id, 0})],
                             ConstValue(graph_, id, request_, &plan_));
    return absl::OkStatus();
  }
  if (graph::HasRole(node.op(), graph::OpRole::kMappedConst)) {
    OPTFARM_ASSIGN_OR_RETURN(plan_.initial[slots_.Of({id, 0})],
                             ImmutableConstValue(graph_, id, request_, &plan_));
    return absl::OkStatus();
  }
  OPTFARM_RETURN_IF_ERROR(OutputCountOf(node).status());
  const KernelEntry* entry = AllKernels().Find(node.op());
  if (entry == nullptr) return NoKernelFor(node);
  OPTFARM_RETURN_IF_ERROR(CheckArity(node));
  if (IsEnter(node.op())) return absl::OkStatus();  // The loop's beginning.
  Step step;
  step.kind = KindOf(node.op());
  step.is_pure = entry->is_pure;
  step.ignores_dead_controls = node.op() == "ControlTrigger";
  step.name = node.name();
  step.op = node.op();
  step.node = &node.def();
  if (step.kind == StepKind::kKernel) {
    OPTFARM_ASSIGN_OR_RETURN(step.kernel, KernelOf(id, *entry));
  }
  step.controls = slots_.OfControls(node);
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
  entry.controls = slots_.OfControls(node);
  reader.controls = entry.controls;
  const Endpoint from = node.inputs()[0];
  entry.from = slots_.Of(from);
  const bool is_reference =
      !IsFed(from) && graph::IsRefType(TypeOf(graph_, from));
  if (is_reference && node.op() != "RefEnter") {
    entry.from = ReadVariable(reader, entry.from, nest_.loops[loop].parent, {});
  }
  if (!IsFed({id, 0})) {
    // A constant is the outer value itself: no copy, and it can be folded.
    const bool is_alias = entry.is_constant && entry.controls.empty();
    if (is_alias) slots_.Share({id, 0}, entry.from);
    entry.to = slots_.Of({id, 0});
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
  std::vector<Tap> taps;
  for (const Endpoint& e : ends_.fetches) {
    if (e.port == graph::kControlPort) {
      plan_.fetch_slots.push_back(kNoSlot);
      continue;
    }
    const int slot = slots_.Of(e);
    const int loop = plan_.slot_loop[slot];
    if (loop == kNoLoop) {
      plan_.fetch_slots.push_back(slot);
      continue;
    }
    const int out = slots_.New(kNoLoop);
    plan_.fetch_slots.push_back(out);
    LoopPlan* outermost = &plan_.loops[loop];
    while (outermost->parent != kNoLoop) {
      outermost = &plan_.loops[outermost->parent];
    }
    outermost->exits.push_back(out);
    Step tap;
    tap.kind = StepKind::kExit;
    tap.is_pure = false;
    tap.is_helper = true;
    tap.name = graph_.NameOf(e);
    tap.op = "Exit";
    tap.inputs = {slot};
    tap.outputs = {out};
    taps.push_back({slot, std::move(tap)});
  }
  if (!taps.empty()) InsertTaps(std::move(taps), &plan_);
}

absl::StatusOr<ExecutionPlan> Planner::Build() {
  OPTFARM_ASSIGN_OR_RETURN(ends_,
                           FindEnds(graph_, request_.feeds, request_.fetches));
  for (const Endpoint& e : ends_.feeds)
    plan_.feed_slots.push_back(slots_.Of(e));
  plan_.feed_types = ends_.feed_types;
  for (const graph::TensorName& name : request_.feeds) {
    plan_.feed_names.push_back(graph::ToString(name));
  }
  for (const graph::TensorName& name : request_.fetches) {
    plan_.fetch_names.push_back(graph::ToString(name));
  }
  const GraphPart part = {graph_, ends_.needed,
                          [this](Endpoint e) { return IsFed(e); }};
  OPTFARM_ASSIGN_OR_RETURN(nest_, FindLoops(part));
  plan_.loops.resize(nest_.loops.size());
  OPTFARM_RETURN_IF_ERROR(EmitList(nest_.top));
  AddFetches();
  NumberLoopSteps(&plan_);
  size_t widest_merge = 1;
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

absl::StatusOr<ExecutionPlan> MakePlan(const Graph& graph,
                                       const PlanRequest& request) {
  return Planner(graph, request).Build();
}

}  // namespace optfarm::runtime
