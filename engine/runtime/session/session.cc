// The door to the runtime: what a caller gives is checked here, the planner
// makes the steps and the executor walks them.

#include "engine/runtime/session/session.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/function_inlining.h"
#include "engine/runtime/plan/execution_plan.h"
#include "engine/runtime/plan/executor.h"
#ifdef OPTFARM_FAST_KERNELS
#include "engine/runtime/fusion/fusions.h"
#include "engine/runtime/fusion/int4_products.h"
#endif
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/plan/plan_constants.h"
#include "engine/runtime/plan/planner.h"
#include "engine/runtime/plan/weight_ledger.h"

namespace optfarm::runtime {
namespace {

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

// Run states that no run uses at the moment: as many as ran at once.
class RunStatePool {
 public:
  std::unique_ptr<RunState> Take(const ExecutionPlan& plan) {
    {
      absl::MutexLock lock(&mutex_);
      if (!free_.empty()) {
        std::unique_ptr<RunState> state = std::move(free_.back());
        free_.pop_back();
        return state;
      }
    }
    return std::make_unique<RunState>(plan);
  }

  void Return(std::unique_ptr<RunState> state) {
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(state));
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<RunState>> free_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CheckFeeds(const ExecutionPlan& plan,
                        absl::Span<const Tensor> inputs) {
  if (inputs.size() != plan.feed_slots.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("running the graph: ", inputs.size(), " inputs given, ",
                     plan.feed_slots.size(), " expected"));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].has_value() ||
        (plan.feed_types[i] != tensorflow::DT_INVALID &&
         inputs[i].dtype() != plan.feed_types[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("running the graph: input '", plan.feed_names[i],
                       "' is ", graph::DataTypeName(plan.feed_types[i]),
                       ", got ", inputs[i].DebugString(0)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> TakeFetches(const ExecutionPlan& plan,
                                                const RunState& state) {
  std::vector<Tensor> results;
  results.reserve(plan.fetch_slots.size());
  for (size_t i = 0; i < plan.fetch_slots.size(); ++i) {
    const int slot = plan.fetch_slots[i];
    if (slot == kNoSlot) {
      results.emplace_back();
      continue;
    }
    if (!state.slots[slot].has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("output '", plan.fetch_names[i],
                       "' has no value: a Switch cut it off in this run"));
    }
    results.push_back(state.slots[slot]);
  }
  return results;
}

// A budget only where somebody asks what is taken: counting costs a little.
absl::Status ExecuteBounded(const ExecutionPlan& plan,
                            const KernelEnvironment& environment,
                            const RunOptions& options, RunState* state) {
  if (options.memory_limit == MemoryBudget::kUnlimited &&
      options.trace == nullptr) {
    return Execute(plan, environment, options, state);
  }
  const auto budget = std::make_shared<MemoryBudget>(options.memory_limit);
  // The planned piece is the run's as long as it uses it.
  const int64_t arena = state->memory.arena_bytes();
  const bool has_arena = budget->Take(arena);
  if (!has_arena) state->memory.Suspend();
  const BudgetScope scope(budget);
  const absl::Status status = Execute(plan, environment, options, state);
  if (has_arena) budget->Give(arena);
  if (options.trace != nullptr) options.trace->peak_bytes = budget->peak();
  return status;
}

#ifdef OPTFARM_FAST_KERNELS
constexpr absl::string_view kDequantize = "DequantizeLinear";
constexpr absl::string_view kDequantizeBlocks = "DequantizeBlocks";

std::vector<const Fusion*> FusionsThatWant(bool quantized_constants) {
  std::vector<const Fusion*> fusions = UsedFusions();
  std::erase_if(fusions, [&](const Fusion* fusion) {
    return fusion->wants_quantized_constants != quantized_constants;
  });
  return fusions;
}

// UNITS: bytes that weights in blocks of 4 bits would take as floats; -1 for
// none.
int64_t Int4ProductBytes(const ExecutionPlan& plan) {
  int64_t bytes = -1;
  for (const Step& step : plan.steps) {
    if (step.op != kDequantizeBlocks || step.inputs.empty()) continue;
    // Two values to a byte.
    constexpr int64_t kFloatBytes = 2 * sizeof(float);
    bytes = std::max<int64_t>(bytes, 0) +
            kFloatBytes * plan.initial[step.inputs[0]].TotalBytes();
  }
  return bytes;
}

// What is to see constants before they are dequantized.
absl::Status FuseQuantized(const KernelEnvironment& environment,
                           const SessionOptions& options, int64_t memory_limit,
                           WeightLedger* weights, ExecutionPlan* plan) {
  std::vector<absl::string_view> left;
  const bool has_any =
      std::any_of(plan->steps.begin(), plan->steps.end(),
                  [](const Step& step) { return step.op == kDequantize; });
  if (has_any) left.push_back(kDequantize);
  if (Int4ProductBytes(*plan) >= Int4ProductsFrom()) {
    left.push_back(kDequantizeBlocks);
  }
  if (left.empty()) return absl::OkStatus();
  FoldConstants(environment, memory_limit, plan, left);
  OPTFARM_RETURN_IF_ERROR(AlignConstants(/*packed_later=*/true, plan));
  RunFusions(FusionsThatWant(true), UsedCpuFeatures(), plan, weights,
             options.fused_nodes);
  return absl::OkStatus();
}
#endif

// The graph without calls, the plan, its constants: all within the limit.
absl::StatusOr<ExecutionPlan> LoadPlan(const graph::Graph& graph,
                                       const PlanRequest& request,
                                       const KernelEnvironment& environment) {
  const SessionOptions& options = request.options;
  const auto budget = std::make_shared<MemoryBudget>(options.memory_limit);
  std::optional<BudgetScope> scope;
  if (options.memory_limit != MemoryBudget::kUnlimited) scope.emplace(budget);
  std::vector<graph::NodeId> roots;
  for (const auto& name : request.fetches)
    roots.push_back(graph.Find(name.node));
  std::vector<graph::NodeId> fed;
  for (const auto& name : request.feeds) fed.push_back(graph.Find(name.node));
  // MakePlan tells of names that are not there.
  std::erase(roots, graph::kNoNode);
  std::erase(fed, graph::kNoNode);
  std::optional<graph::Graph> inlined;
  if (graph::HasCalls(graph, roots, fed)) {
    inlined = graph.Clone();
    OPTFARM_RETURN_IF_ERROR(graph::InlineCalls(roots, fed, &*inlined));
  }
  OPTFARM_ASSIGN_OR_RETURN(ExecutionPlan plan,
                           MakePlan(inlined ? *inlined : graph, request));
#ifdef OPTFARM_FAST_KERNELS
  WeightLedger weights;
  if (options.fold_constants && options.fast_kernels) {
    OPTFARM_RETURN_IF_ERROR(FuseQuantized(environment, options,
                                          options.memory_limit - budget->used(),
                                          &weights, &plan));
  }
#endif
  if (options.fold_constants) {
    FoldConstants(environment, options.memory_limit - budget->used(), &plan);
    LetReadersWait(environment, &plan);
    EndIterationsLast(&plan);
  }
#ifdef OPTFARM_FAST_KERNELS
  if (options.fast_kernels) {
    OPTFARM_RETURN_IF_ERROR(AlignConstants(/*packed_later=*/true, &plan));
    RunFusions(FusionsThatWant(false), UsedCpuFeatures(), &plan, &weights,
               options.fused_nodes);
    // What is not kept does not count.
    plan.constant_bytes -= weights.LeaveInFile();
    plan.constant_bytes -= weights.LimitWeights(options.packed_weights_limit);
  }
#endif
  OPTFARM_RETURN_IF_ERROR(AlignConstants(/*packed_later=*/false, &plan));
  plan.weights.clear();
  // The graph's nodes may not be there any longer.
  for (Step& step : plan.steps) step.node = nullptr;
  PlanLifetimes(options.reuse_buffers, &plan);
  if (options.plan_memory) {
    PlanMemory(inlined ? *inlined : graph, request, &plan);
  }
  return plan;
}

}  // namespace

struct Session::Loaded {
  ExecutionPlan plan;
  std::unique_ptr<ThreadPool> own_pool;
  ThreadPool* pool = nullptr;
  std::function<void(absl::string_view)> print;
  std::shared_ptr<ResourceContainer> resources;
  mutable RunStatePool states;

  KernelEnvironment environment() const {
    return {pool, &print, resources.get()};
  }
};

Session::Session(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
Session::~Session() = default;

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const graph::Graph& graph, absl::Span<const graph::TensorName> feeds,
    absl::Span<const graph::TensorName> fetches,
    const SessionOptions& options) {
  return CreateOver(graph, nullptr, feeds, fetches, options);
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const std::shared_ptr<const LoadedModel>& model,
    absl::Span<const graph::TensorName> feeds,
    absl::Span<const graph::TensorName> fetches,
    const SessionOptions& options) {
  return CreateOver(model->graph(), model.get(), feeds, fetches, options);
}

absl::StatusOr<std::unique_ptr<Session>> Session::CreateOver(
    const graph::Graph& graph, const LoadedModel* model,
    absl::Span<const graph::TensorName> feeds,
    absl::Span<const graph::TensorName> fetches,
    const SessionOptions& options) {
  OPTFARM_RETURN_IF_ERROR(CheckProcessor());
  if (options.threads < 1 || options.threads > 1024) {
    return absl::InvalidArgumentError(absl::StrCat(
        "number of threads must be 1 to 1024, got ", options.threads));
  }
  auto loaded = std::make_unique<Loaded>();
  loaded->pool = options.pool;
  if (options.pool == nullptr) {
    loaded->own_pool = std::make_unique<ThreadPool>(options.threads);
    loaded->pool = loaded->own_pool.get();
  }
  loaded->print = options.print ? options.print : PrintToStderr;
  loaded->resources = options.resources ? options.resources
                                        : std::make_shared<ResourceContainer>();
  const PlanRequest request = {feeds, fetches, options, model};
  OPTFARM_ASSIGN_OR_RETURN(loaded->plan,
                           LoadPlan(graph, request, loaded->environment()));
  return std::unique_ptr<Session>(new Session(std::move(loaded)));
}

absl::StatusOr<std::vector<Tensor>> Session::Run(
    absl::Span<const Tensor> inputs, const RunOptions& options) const {
  const ExecutionPlan& plan = loaded_->plan;
  OPTFARM_RETURN_IF_ERROR(CheckFeeds(plan, inputs));
  std::unique_ptr<RunState> state = loaded_->states.Take(plan);
  for (size_t i = 0; i < inputs.size(); ++i) {
    state->slots[plan.feed_slots[i]] = inputs[i];
  }
  state->memory.Begin(inputs);
  absl::StatusOr<std::vector<Tensor>> results;
  absl::Status status =
      ExecuteBounded(plan, loaded_->environment(), options, state.get());
  if (status.ok()) {
    results = TakeFetches(plan, *state);
  } else {
    results = std::move(status);
  }
  const Tensor nothing;
  for (int slot : plan.transient) {
    if (state->slots[slot].has_value()) state->slots[slot] = nothing;
  }
  state->memory.End(results.ok());
  loaded_->states.Return(std::move(state));
  return results;
}

absl::StatusOr<std::vector<Tensor>> Session::Run(
    absl::Span<const Tensor> inputs, RunTrace* trace) const {
  RunOptions options;
  options.trace = trace;
  return Run(inputs, options);
}

int Session::step_count() const {
  return static_cast<int>(loaded_->plan.steps.size());
}

int64_t Session::constant_bytes() const { return loaded_->plan.constant_bytes; }

}  // namespace optfarm::runtime
