// Ops that pass values on or hold them back: identities, placeholders,
// constants, Switch and Merge, loops, checks. The executor carries out the
// identities, Switch, Merge and the loops' ops itself.

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/text/summary.h"

namespace optfarm::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> MakeIdentity(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, context->num_inputs()));
    for (int i = 0; i < context->num_inputs(); ++i) {
      context->SetOutput(i, context->input(i));
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeNoOp(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext*) { return absl::OkStatus(); });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePlaceholder(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext*) {
    return absl::InvalidArgumentError(
        "a value must be fed for this placeholder");
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeConst(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::TensorProto* proto,
                           graph::GetTensor(node, "value"));
  OPTFARM_ASSIGN_OR_RETURN(Tensor value, Tensor::FromProto(*proto));
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetTypeOr(node, "dtype", value.dtype()));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(value, "value", dtype));
  return MakeKernel([value](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 0));
    context->SetOutput(0, value);
    return absl::OkStatus();
  });
}

template <typename T>
absl::Status CheckFinite(const Tensor& tensor, absl::string_view message) {
  bool has_nan = false;
  bool has_inf = false;
  for (T value : tensor.flat<T>()) {
    has_nan |= std::isnan(value);
    has_inf |= std::isinf(value);
  }
  if (!has_nan && !has_inf) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      message, " : Tensor had ", has_inf ? "Inf" : "",
      has_inf && has_nan ? " and " : "", has_nan ? "NaN" : "", " values"));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeCheckNumerics(
    const tensorflow::NodeDef& node) {
  OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(
      node, "T", {tensorflow::DT_FLOAT, tensorflow::DT_DOUBLE}));
  OPTFARM_ASSIGN_OR_RETURN(const std::string message,
                           graph::GetStringOr(node, "message", ""));
  return MakeKernel([message](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    const Tensor& tensor = context->input(0);
    if (tensor.dtype() == tensorflow::DT_FLOAT) {
      OPTFARM_RETURN_IF_ERROR(CheckFinite<float>(tensor, message));
    } else if (tensor.dtype() == tensorflow::DT_DOUBLE) {
      OPTFARM_RETURN_IF_ERROR(CheckFinite<double>(tensor, message));
    } else {
      return UnsupportedDtype("tensor", tensor.dtype());
    }
    context->SetOutput(0, tensor);
    return absl::OkStatus();
  });
}

absl::Status RequireCondition(const Tensor& condition, absl::string_view name) {
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(condition, name));
  return RequireDtype(condition, name, tensorflow::DT_BOOL);
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAssert(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t summarize,
                           graph::GetIntOr(node, "summarize", 3));
  return MakeKernel([summarize](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputsAtLeast(*context, 1));
    OPTFARM_RETURN_IF_ERROR(RequireCondition(context->input(0), "condition"));
    if (*context->input(0).data<bool>()) return absl::OkStatus();
    std::string message = "assertion failed:";
    for (int i = 1; i < context->num_inputs(); ++i) {
      absl::StrAppend(&message, " [", Summarize(context->input(i), summarize),
                      "]");
    }
    return absl::InvalidArgumentError(message);
  });
}

// Output 1 gets the value when the predicate holds, output 0 otherwise.
absl::StatusOr<std::unique_ptr<Kernel>> MakeSwitch(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    OPTFARM_RETURN_IF_ERROR(RequireCondition(context->input(1), "pred"));
    const int chosen = *context->input(1).data<bool>() ? 1 : 0;
    context->SetOutput(chosen, context->input(0));
    return absl::OkStatus();
  });
}

// Passes on the first input that is alive, and its number.
absl::StatusOr<std::unique_ptr<Kernel>> MakeMerge(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    for (int i = 0; i < context->num_inputs(); ++i) {
      if (!context->input(i).has_value()) continue;
      context->SetOutput(0, context->input(i));
      context->SetOutput(1, Tensor::Scalar<int32_t>(i));
      return absl::OkStatus();
    }
    // All dead: so are the outputs.
    return absl::OkStatus();
  });
}

}  // namespace

void AddControlKernels(KernelCatalog* catalog) {
  catalog->Add("Identity", MakeIdentity);
  catalog->Add("IdentityN", MakeIdentity);
  catalog->Add("StopGradient", MakeIdentity);
  catalog->Add("PreventGradient", MakeIdentity);
  catalog->Add("Snapshot", MakeIdentity);
  catalog->Add("GuaranteeConst", MakeIdentity);
  catalog->Add("PlaceholderWithDefault", MakeIdentity);
  // Which iteration they run in is what they mean: nobody runs them ahead.
  catalog->Add("Enter", MakeIdentity, /*is_pure=*/false);
  catalog->Add("RefEnter", MakeIdentity, /*is_pure=*/false);
  catalog->Add("Exit", MakeIdentity, /*is_pure=*/false);
  catalog->Add("RefExit", MakeIdentity, /*is_pure=*/false);
  catalog->Add("NextIteration", MakeIdentity, /*is_pure=*/false);
  catalog->Add("RefNextIteration", MakeIdentity, /*is_pure=*/false);
  catalog->Add("LoopCond", MakeIdentity, /*is_pure=*/false);
  catalog->Add("NoOp", MakeNoOp, /*is_pure=*/false);
  catalog->Add("ControlTrigger", MakeNoOp, /*is_pure=*/false);
  catalog->Add("Placeholder", MakePlaceholder, /*is_pure=*/false);
  catalog->Add("PlaceholderV2", MakePlaceholder, /*is_pure=*/false);
  catalog->Add("Const", MakeConst);
  catalog->Add("CheckNumerics", MakeCheckNumerics);
  catalog->Add("Assert", MakeAssert, /*is_pure=*/false);
  catalog->Add("Switch", MakeSwitch);
  catalog->Add("RefSwitch", MakeSwitch);
  catalog->Add("Merge", MakeMerge);
  catalog->Add("RefMerge", MakeMerge);
}

}  // namespace optfarm::runtime
