// Variables, as references (Variable, Assign) and as resources (VarHandleOp,
// ReadVariableOp): graphs that were not frozen. A reference is read by the
// executor where an op wants a value; the ops here change what it leads to.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/partial_shape.h"
#include "engine/runtime/core/variable.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/catalog.h"
#include "engine/runtime/reference/dtype_switch.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/state/handles.h"
#include "engine/runtime/reference/state/variable_changes.h"

namespace optfarm::runtime {
namespace {

// A handle to the variable of that name in the session's container.
absl::StatusOr<std::unique_ptr<Kernel>> MakeVariable(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, graph::GetType(node, "dtype"));
  OPTFARM_ASSIGN_OR_RETURN(const std::string name, ResourceName(node));
  return MakeKernel([dtype, name](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 1));
    if (context->resources() == nullptr) {
      return absl::FailedPreconditionError("there is no place for variables");
    }
    auto resource = context->resources()->GetOrMake(
        name, [&] { return std::make_shared<Variable>(dtype); });
    const auto* variable = dynamic_cast<const Variable*>(resource.get());
    if (variable == nullptr || variable->dtype() != dtype) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' is already the name of another ", resource->kind()));
    }
    context->SetOutput(0, MakeHandle(std::move(resource)));
    return absl::OkStatus();
  });
}

// Not kept by name: it lives as long as the handle goes around.
absl::StatusOr<std::unique_ptr<Kernel>> MakeTemporary(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype, graph::GetType(node, "dtype"));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    context->SetOutput(0, MakeHandle(std::make_shared<Variable>(dtype)));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeRead(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    OPTFARM_ASSIGN_OR_RETURN(Tensor value, variable->Read());
    context->SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

// State of a model that has no step to initialize it.
absl::StatusOr<std::unique_ptr<Kernel>> MakeReadOrInitial(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    if (!variable->IsInitialized()) {
      context->SetOutput(0, context->input(1));
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(Tensor value, variable->Read());
    OPTFARM_RETURN_IF_ERROR(RequireSameDtype(value, context->input(1)));
    context->SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeIsInitialized(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    context->SetOutput(0, Tensor::Scalar<bool>(variable->IsInitialized()));
    return absl::OkStatus();
  });
}

// The ops on references hand the reference on, those on resources do not.
void HandOnReference(KernelContext* context) {
  if (context->num_outputs() > 0) context->SetOutput(0, context->input(0));
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeAssign(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& input = context->input(0);
    if (input.has_value() && input.resource() == nullptr &&
        context->num_outputs() == 1) {
      // A frozen variable: see ChangeReferred.
      OPTFARM_RETURN_IF_ERROR(RequireSameDtype(input, context->input(1)));
      context->SetOutput(0, context->input(1));
      return absl::OkStatus();
    }
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    OPTFARM_RETURN_IF_ERROR(variable->Assign(context->input(1)));
    HandOnReference(context);
    return absl::OkStatus();
  });
}

template <Change kChange>
absl::StatusOr<std::unique_ptr<Kernel>> MakeUpdate(
    const tensorflow::NodeDef& node) {
  for (const char* attr : {"T", "dtype"}) {
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, attr, OPTFARM_NUMBER_TYPES));
  }
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    const Tensor& update = context->input(1);
    const auto change = [&](Tensor* value) -> absl::Status {
      OPTFARM_RETURN_IF_ERROR(RequireSameDtype(*value, update));
      OPTFARM_RETURN_IF_ERROR(RequireShape(update, "value", value->shape()));
      return ChangeElements(kChange, update, 0, update.num_elements(), 0,
                            value);
    };
    return ChangeReferred(context, change);
  });
}

// Gives the value and counts on, until the limit.
absl::StatusOr<std::unique_ptr<Kernel>> MakeCountUpTo(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t limit, graph::GetInt(node, "limit"));
  return MakeKernel([limit](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    Tensor before;
    const auto count = [&](auto* value) -> absl::Status {
      using T = std::remove_pointer_t<decltype(value)>;
      if (*value >= limit) {
        return absl::OutOfRangeError(
            absl::StrCat("the counter reached its limit of ", limit));
      }
      before = Tensor::Scalar<T>(*value);
      ++*value;
      return absl::OkStatus();
    };
    const auto change = [&](Tensor* value) -> absl::Status {
      OPTFARM_RETURN_IF_ERROR(RequireOneElement(*value, "ref"));
      if (value->dtype() == tensorflow::DT_INT32) {
        return count(value->data<int32_t>());
      }
      if (value->dtype() == tensorflow::DT_INT64) {
        return count(value->data<int64_t>());
      }
      return UnsupportedDtype("ref", value->dtype());
    };
    OPTFARM_RETURN_IF_ERROR(variable->Update(change));
    context->SetOutput(0, std::move(before));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeShape(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(
      const DataType dtype,
      graph::GetTypeOr(node, "out_type", tensorflow::DT_INT32));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value, variable->Read());
    const auto dims = value.shape().dims();
    const Shape shape = {static_cast<int64_t>(dims.size())};
    if (dtype == tensorflow::DT_INT64) {
      context->SetOutput(0, Tensor::FromValues<int64_t>(shape, dims));
      return absl::OkStatus();
    }
    const std::vector<int32_t> narrow(dims.begin(), dims.end());
    context->SetOutput(0, Tensor::FromValues<int32_t>(shape, narrow));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeDestroy(
    const tensorflow::NodeDef&) {
  // The container keeps the name; what is there is as if never assigned.
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    variable->Clear();
    return absl::OkStatus();
  });
}

// Gather over the variable's value.
absl::StatusOr<std::unique_ptr<Kernel>> MakeResourceGather(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const int64_t batch_dims,
                           graph::GetIntOr(node, "batch_dims", 0));
  if (batch_dims != 0) {
    return absl::UnimplementedError(
        absl::StrCat("batch_dims = ", batch_dims, " is not supported"));
  }
  const KernelEntry* entry = AllKernels().Find("Gather");
  if (entry == nullptr) {
    return absl::UnimplementedError("the build has no kernel for Gather");
  }
  OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<Kernel> gather, entry->Make(node));
  return MakeKernel([gather](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    OPTFARM_ASSIGN_OR_RETURN(Tensor value, variable->Read());
    Tensor indices = context->input(1);
    Tensor out;
    Tensor* const inputs[] = {&value, &indices};
    Tensor* const outputs[] = {&out};
    KernelContext inner(inputs, outputs, context->environment());
    OPTFARM_RETURN_IF_ERROR(gather->Compute(&inner));
    context->SetOutput(0, std::move(out));
    return absl::OkStatus();
  });
}

}  // namespace

void AddVariableKernels(KernelCatalog* catalog) {
  AddVariableScatterKernels(catalog);
  catalog->Add("Variable", MakeVariable, /*is_pure=*/false);
  catalog->Add("VariableV2", MakeVariable, /*is_pure=*/false);
  catalog->Add("VarHandleOp", MakeVariable, /*is_pure=*/false);
  catalog->Add("TemporaryVariable", MakeTemporary, /*is_pure=*/false);
  catalog->Add("DestroyTemporaryVariable", MakeRead, /*is_pure=*/false);
  catalog->Add("ReadVariableOp", MakeRead, /*is_pure=*/false);
  catalog->Add("ReadVariableOrInitial", MakeReadOrInitial, /*is_pure=*/false);
  catalog->Add("IsVariableInitialized", MakeIsInitialized, /*is_pure=*/false);
  catalog->Add("VarIsInitializedOp", MakeIsInitialized, /*is_pure=*/false);
  catalog->Add("Assign", MakeAssign, /*is_pure=*/false);
  catalog->Add("AssignVariableOp", MakeAssign, /*is_pure=*/false);
  catalog->Add("AssignAdd", MakeUpdate<Change::kAdd>, /*is_pure=*/false);
  catalog->Add("AssignAddVariableOp", MakeUpdate<Change::kAdd>,
               /*is_pure=*/false);
  catalog->Add("AssignSub", MakeUpdate<Change::kSubtract>, /*is_pure=*/false);
  catalog->Add("AssignSubVariableOp", MakeUpdate<Change::kSubtract>,
               /*is_pure=*/false);
  catalog->Add("CountUpTo", MakeCountUpTo, /*is_pure=*/false);
  catalog->Add("VariableShape", MakeShape, /*is_pure=*/false);
  catalog->Add("DestroyResourceOp", MakeDestroy, /*is_pure=*/false);
  catalog->Add("ResourceGather", MakeResourceGather, /*is_pure=*/false);
}

}  // namespace optfarm::runtime
