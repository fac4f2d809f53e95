// Convolutions that resize and pad their input themselves. They are the other
// kernels run one after the other, so that they mean exactly the same.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/catalog.h"
#include "engine/runtime/reference/families.h"

namespace optfarm::runtime {
namespace {

using tensorflow::NodeDef;

// The kernel for a node of `op` that has the attributes of `node`.
absl::StatusOr<std::shared_ptr<const Kernel>> MakeStage(const char* op,
                                                        const NodeDef& node) {
  NodeDef stage = node;
  stage.set_op(op);
  if (const tensorflow::AttrValue* align =
          graph::FindAttr(node, "resize_align_corners")) {
    (*stage.mutable_attr())["align_corners"] = *align;
  }
  OPTFARM_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                           AllKernels().Find(op)->Make(stage));
  return std::shared_ptr<const Kernel>(std::move(kernel));
}

absl::StatusOr<Tensor> RunStage(const Kernel& kernel,
                                std::vector<Tensor> inputs, ThreadPool* pool) {
  static const std::function<void(absl::string_view)>* const kNoPrint =
      new std::function<void(absl::string_view)>([](absl::string_view) {});
  Tensor output;
  KernelContext context(absl::MakeSpan(inputs), absl::MakeSpan(&output, 1),
                        pool, kNoPrint);
  OPTFARM_RETURN_IF_ERROR(kernel.Compute(&context));
  return output;
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFusedPadConv2D(
    const NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const auto pad, MakeStage("MirrorPad", node));
  OPTFARM_ASSIGN_OR_RETURN(const auto conv, MakeStage("Conv2D", node));
  return MakeKernel([pad, conv](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 3));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor value, RunStage(*pad, {c->input(0), c->input(1)}, c->pool()));
    OPTFARM_ASSIGN_OR_RETURN(
        value, RunStage(*conv, {std::move(value), c->input(2)}, c->pool()));
    c->SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFusedResizeAndPadConv2D(
    const NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const auto resize,
                           MakeStage("ResizeBilinear", node));
  OPTFARM_ASSIGN_OR_RETURN(const auto pad, MakeStage("MirrorPad", node));
  OPTFARM_ASSIGN_OR_RETURN(const auto conv, MakeStage("Conv2D", node));
  return MakeKernel([resize, pad, conv](KernelContext* c) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*c, 4));
    OPTFARM_ASSIGN_OR_RETURN(
        Tensor value, RunStage(*resize, {c->input(0), c->input(1)}, c->pool()));
    OPTFARM_ASSIGN_OR_RETURN(
        value, RunStage(*pad, {std::move(value), c->input(2)}, c->pool()));
    OPTFARM_ASSIGN_OR_RETURN(
        value, RunStage(*conv, {std::move(value), c->input(3)}, c->pool()));
    c->SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

}  // namespace

void AddFusedConvolutionKernels(KernelCatalog* catalog) {
  catalog->Add("FusedPadConv2D", MakeFusedPadConv2D);
  catalog->Add("FusedResizeAndPadConv2D", MakeFusedResizeAndPadConv2D);
}

}  // namespace optfarm::runtime
