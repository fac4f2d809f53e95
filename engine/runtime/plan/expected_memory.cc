// What can be known of a run's memory before the first one: sizes from inferred
// shapes, lifetimes from the steps. Which kernels hand a buffer on is guessed
// from their ops; a wrong guess costs the first run one allocation.

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/graph/attr.h"
#include "engine/graph/ops/op_table.h"
#include "engine/graph/shape_inference.h"
#include "engine/runtime/plan/graph_ends.h"
#include "engine/runtime/plan/planner.h"
#include "engine/runtime/reference/catalog.h"

namespace optfarm::runtime {
namespace {

using graph::PartialShape;

// The shape with which a placeholder is most likely fed.
std::optional<PartialShape> FeedShape(const graph::Graph& graph,
                                      const graph::TensorName& name) {
  const graph::NodeId id = graph.Find(name.node);
  if (id == graph::kNoNode || name.port != 0) return std::nullopt;
  const tensorflow::NodeDef& node = graph.node(id).def();
  const auto it = node.attr().find("shape");
  const bool is_placeholder = graph::IsPlaceholder(node.op()) ||
                              graph::IsOptionalPlaceholder(node.op());
  if (!is_placeholder || it == node.attr().end()) return std::nullopt;
  absl::StatusOr<PartialShape> shape =
      PartialShape::FromProto(it->second.shape());
  if (!shape.ok() || !shape->has_rank()) return std::nullopt;
  if (shape->rank() > 0 && shape->dim(0) == graph::kUnknownDim) {
    shape->set_dim(0, 1);
  }
  if (!shape->is_static()) return std::nullopt;
  return *std::move(shape);
}

// Ops that give their first input on under another shape.
bool SharesItsInput(absl::string_view op) {
  const graph::OpRow& row = graph::RowOf(op);
  const bool reshapes =
      row.flow == graph::ValueFlow::kReshaping && row.range_input < 0;
  return reshapes || row.flow == graph::ValueFlow::kForwarding ||
         op == "Bitcast";
}

class Forecast {
 public:
  Forecast(const graph::Graph& graph, const graph::ShapeMap& shapes,
           ExecutionPlan* plan)
      : graph_(graph),
        shapes_(shapes),
        plan_(*plan),
        block_of_(plan->initial.size(), kNoBlock) {}

  void Make() {
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      const Step& step = plan_.steps[i];
      for (size_t k = 0; k < step.outputs.size(); ++k) {
        if (step.outputs[k] != kNoSlot) Add(static_cast<int>(i), step, k);
      }
      for (int slot : step.release) Release(slot, static_cast<int>(i));
    }
    // What nobody releases outlives the run.
    for (int slot = 0; slot < static_cast<int>(block_of_.size()); ++slot) {
      if (block_of_[slot] == kNoBlock) continue;
      blocks_[block_of_[slot]].end = -1;
    }
    plan_.expected.bytes = PlaceBlocks(&blocks_);
    plan_.expected.blocks = std::move(blocks_);
  }

 private:
  static constexpr int kNoBlock = -1;

  int64_t BytesOf(int slot) const {
    const graph::Endpoint tensor = plan_.slot_tensors[slot];
    if (tensor.node == graph::kNoNode) return 0;
    const PartialShape& partial = shapes_.Of(tensor);
    if (!partial.is_static() || !partial.elements().has_value()) return 0;
    const DataType dtype = graph::BaseType(TypeOf(graph_, tensor));
    absl::StatusOr<Shape> shape = Shape::FromDims(partial.dims());
    return shape.ok() ? PlaceBytes(dtype, *shape) : 0;
  }

  // The block that the output takes over, kNoBlock when it is a new one.
  int TakenOver(const Step& step, int64_t bytes) const {
    if (step.inputs.empty()) return kNoBlock;
    if (step.kind != StepKind::kKernel || SharesItsInput(step.op)) {
      return block_of_[step.inputs[0]];
    }
    const KernelEntry* entry = AllKernels().Find(step.op);
    if (entry == nullptr || !entry->family.writes_over_inputs) return kNoBlock;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int block = block_of_[step.inputs[i]];
      if (block == kNoBlock || !step.last_use[i]) continue;
      if (blocks_[block].bytes == bytes && holders_[block] == 1) return block;
    }
    return kNoBlock;
  }

  void Add(int at, const Step& step, size_t output) {
    const int slot = step.outputs[output];
    const int64_t bytes = BytesOf(slot);
    int block = TakenOver(step, bytes);
    if (block == kNoBlock) {
      if (bytes == 0 || !step.has_places) return;
      block = static_cast<int>(blocks_.size());
      blocks_.push_back({bytes, -1, at, -1});
      holders_.push_back(0);
    }
    block_of_[slot] = block;
    ++holders_[block];
  }

  void Release(int slot, int at) {
    const int block = block_of_[slot];
    if (block == kNoBlock) return;
    block_of_[slot] = kNoBlock;
    if (--holders_[block] == 0) blocks_[block].end = at;
  }

  const graph::Graph& graph_;
  const graph::ShapeMap& shapes_;
  ExecutionPlan& plan_;
  std::vector<Block> blocks_;
  // By block, the slots that hold it.
  std::vector<int> holders_;
  // By slot.
  std::vector<int> block_of_;
};

void Foresee(const graph::Graph& graph, const PlanRequest& request,
             ExecutionPlan* plan) {
  graph::ShapeOptions options;
  std::vector<Shape> feeds;
  for (const graph::TensorName& name : request.feeds) {
    std::optional<PartialShape> partial = FeedShape(graph, name);
    if (!partial.has_value()) return;
    absl::StatusOr<Shape> shape = Shape::FromDims(partial->dims());
    if (!shape.ok()) return;
    feeds.push_back(*std::move(shape));
    options.feeds[{graph.Find(name.node), 0}] = *std::move(partial);
  }
  const absl::StatusOr<graph::ShapeMap> shapes =
      graph::InferShapes(graph, options);
  if (!shapes.ok()) return;
  plan->expected.feeds = std::move(feeds);
  Forecast(graph, *shapes, plan).Make();
}

}  // namespace

void PlanMemory(const graph::Graph& graph, const PlanRequest& request,
                ExecutionPlan* plan) {
  plan->plans_memory = true;
  int depth = 0;
  for (Step& step : plan->steps) {
    if (step.kind == StepKind::kLoopBegin) ++depth;
    if (step.kind == StepKind::kLoopEnd) --depth;
    step.has_places = step.kind == StepKind::kKernel && depth == 0;
  }
#ifdef OPTFARM_LITE_RUNTIME
  // The rules for shapes are a good part of a small program; the first run of
  // one does without places and is watched.
  (void)Foresee;
#else
  Foresee(graph, request, plan);
#endif
}

}  // namespace optfarm::runtime
