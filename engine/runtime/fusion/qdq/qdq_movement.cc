#include "engine/runtime/fusion/qdq/qdq_movement.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/graph/op_defs.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::runtime {
namespace {

class MovementKernel final : public QdqMovement {
 public:
  MovementKernel(std::unique_ptr<Kernel> kernel, int tensors)
      : kernel_(std::move(kernel)), tensors_(tensors) {}

  absl::Status Compute(KernelContext* context) const override {
    return kernel_->Compute(context);
  }
  int tensors() const override { return tensors_; }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const int tensors_;
};

}  // namespace

bool IsQdqMovement(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"ConcatV2",
                                        "DepthToSpace",
                                        "ExpandDims",
                                        "GatherV2",
                                        "Identity",
                                        "Reshape",
                                        "ResizeNearestNeighbor",
                                        "ReverseV2",
                                        "Slice",
                                        "SpaceToDepth",
                                        "Squeeze",
                                        "StridedSlice",
                                        "Tile",
                                        "Transpose"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

int MovedTensors(absl::string_view op, size_t inputs) {
  const bool is_join = graph::HasRole(op, graph::OpRole::kConcat);
  return is_join ? static_cast<int>(inputs) - 1 : 1;
}

std::string ElementTypeAttr(absl::string_view op) {
  const tensorflow::OpDef* op_def = graph::FindOpDef(op);
  if (op_def == nullptr || op_def->input_arg().empty()) return "T";
  return op_def->input_arg(0).type_attr();
}

std::unique_ptr<Kernel> MakeQdqMovement(std::unique_ptr<Kernel> kernel,
                                        int tensors) {
  return std::make_unique<MovementKernel>(std::move(kernel), tensors);
}

}  // namespace optfarm::runtime
