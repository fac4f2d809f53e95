#include "engine/runtime/fusion/int8_image.h"

#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "base/status_macros.h"

namespace optfarm::runtime {
namespace {

// Codes, min, max.
constexpr size_t kCodesAndRange = 3;

class Int8ImageLayer final : public Kernel {
 public:
  explicit Int8ImageLayer(Int8ImageParts parts) : parts_(std::move(parts)) {}

  absl::Status Compute(KernelContext* context) const override {
    OPTFARM_ASSIGN_OR_RETURN(const bool is_done, parts_.floats->ComputeFloats(
                                                     *parts_.codes, context));
    return is_done ? absl::OkStatus() : ComputeApart(context);
  }

 private:
  absl::Status ComputeApart(KernelContext* context) const {
    Tensor image = context->input(0);
    std::vector<Tensor> codes(kCodesAndRange);
    KernelContext first =
        context->WithTensors(absl::MakeSpan(&image, 1), absl::MakeSpan(codes));
    OPTFARM_RETURN_IF_ERROR(parts_.quantize->Compute(&first));
    std::vector<Tensor> out(static_cast<size_t>(context->num_outputs()));
    KernelContext second =
        context->WithTensors(absl::MakeSpan(codes), absl::MakeSpan(out));
    OPTFARM_RETURN_IF_ERROR(parts_.layer->Compute(&second));
    for (size_t i = 0; i < out.size(); ++i) {
      context->SetOutput(static_cast<int>(i), std::move(out[i]));
    }
    return absl::OkStatus();
  }

  const Int8ImageParts parts_;
};

}  // namespace

std::unique_ptr<Kernel> MakeInt8ImageLayer(Int8ImageParts parts) {
  return std::make_unique<Int8ImageLayer>(std::move(parts));
}

}  // namespace optfarm::runtime
