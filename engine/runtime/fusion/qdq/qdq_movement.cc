#include "engine/runtime/fusion/qdq/qdq_movement.h"

#include <algorithm>
#include <iterator>
#include <utility>

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

std::unique_ptr<Kernel> MakeQdqMovement(std::unique_ptr<Kernel> kernel,
                                        int tensors) {
  return std::make_unique<MovementKernel>(std::move(kernel), tensors);
}

}  // namespace optfarm::runtime
