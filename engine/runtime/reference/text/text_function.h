// Ops that make one value of each text.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_TEXT_FUNCTION_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_TEXT_FUNCTION_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/runtime/reference/arguments.h"

namespace optfarm::runtime {

inline absl::Status RequireText(const Tensor& tensor, absl::string_view name) {
  return RequireDtype(tensor, name, tensorflow::DT_STRING);
}

// Output 0 has the shape of input 0, and function(text, &value) makes each of
// its values.
template <typename Value>
absl::Status ForEachText(KernelContext* context, auto function) {
  const Tensor& input = context->input(0);
  OPTFARM_RETURN_IF_ERROR(RequireText(input, "input"));
  OPTFARM_ASSIGN_OR_RETURN(
      Tensor * out,
      context->AllocateOutput(0, DataTypeOf<Value>::kValue, input.shape()));
  for (int64_t i = 0; i < input.num_elements(); ++i) {
    OPTFARM_RETURN_IF_ERROR(
        function(input.data<std::string>()[i], out->data<Value>() + i));
  }
  return absl::OkStatus();
}

// A kernel of one input that does so.
template <typename Value>
std::unique_ptr<Kernel> MakeTextFunction(auto function) {
  return MakeKernel([function](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    return ForEachText<Value>(context, function);
  });
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_TEXT_TEXT_FUNCTION_H_
