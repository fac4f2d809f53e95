// Variables, as references (Variable, Assign) and as resources (VarHandleOp,
// ReadVariableOp): graphs that were not frozen. A reference is read by the
// executor where an op wants a value; the ops here change what it leads to.

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/graph/partial_shape.h"
#include "engine/runtime/kernels/arguments.h"
#include "engine/runtime/kernels/dtype_switch.h"
#include "engine/runtime/kernels/families.h"
#include "engine/runtime/kernels/handles.h"
#include "engine/runtime/variable.h"

namespace optfarm::runtime {
namespace {

constexpr char kKind[] = "variable";

absl::StatusOr<Variable*> VariableInput(const KernelContext& context) {
  return ResourceOf<Variable>(context, 0, kKind);
}

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

absl::StatusOr<std::unique_ptr<Kernel>> MakeIsInitialized(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    context->SetOutput(0, Tensor::Scalar<bool>(variable->IsInitialized()));
    return absl::OkStatus();
  });
}

// Makes `change` to what input 0 leads to. Where a graph was frozen a constant
// stands in a variable's place: then the op gives the changed value, and the
// constant stays as it is.
absl::Status ChangeReferred(
    KernelContext* context,
    const std::function<absl::Status(Tensor*)>& change) {
  const Tensor& input = context->input(0);
  const bool is_value = input.has_value() && input.resource() == nullptr &&
                        context->num_outputs() == 1;
  if (!is_value) {
    OPTFARM_ASSIGN_OR_RETURN(Variable * variable, VariableInput(*context));
    OPTFARM_RETURN_IF_ERROR(variable->Update(change));
    if (context->num_outputs() > 0) context->SetOutput(0, input);
    return absl::OkStatus();
  }
  OPTFARM_ASSIGN_OR_RETURN(Tensor value,
                           Tensor::Allocate(input.dtype(), input.shape()));
  OPTFARM_RETURN_IF_ERROR(
      VisitBySize(input.dtype(), "ref", [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        std::copy_n(input.data<T>(), input.num_elements(), value.data<T>());
        return absl::OkStatus();
      }));
  OPTFARM_RETURN_IF_ERROR(change(&value));
  context->SetOutput(0, std::move(value));
  return absl::OkStatus();
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

enum class Change { kSet, kAdd, kSubtract, kMultiply, kDivide, kMin, kMax };

template <typename T>
T Changed(Change change, T old, T update) {
  switch (change) {
    case Change::kSet:
      return update;
    case Change::kAdd:
      return static_cast<T>(old + update);
    case Change::kSubtract:
      return static_cast<T>(old - update);
    case Change::kMultiply:
      if constexpr (std::is_integral_v<T>) {
        // Short types would be multiplied as int, which must not overflow.
        return static_cast<T>(static_cast<uint64_t>(old) *
                              static_cast<uint64_t>(update));
      }
      return static_cast<T>(old * update);
    case Change::kDivide:
      // An integer divided by zero stops the process; TensorFlow gives zero.
      if constexpr (std::is_integral_v<T>) {
        if (update == 0) return 0;
        if constexpr (std::is_signed_v<T>) {
          if (update == -1) return static_cast<T>(0 - old);
        }
      }
      return static_cast<T>(old / update);
    case Change::kMin:
      return std::min(old, update);
    case Change::kMax:
      return std::max(old, update);
  }
  return update;
}

// Changes `size` elements at `to` by those at `from`.
absl::Status ChangeElements(Change change, const Tensor& updates, int64_t from,
                            int64_t size, int64_t to, Tensor* value) {
  if (change == Change::kSet) {
    return VisitBySize(value->dtype(), "ref", [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      std::copy_n(updates.data<T>() + from, size, value->data<T>() + to);
      return absl::OkStatus();
    });
  }
  return VisitNumber(value->dtype(), "ref", [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    // Overflow wraps, as in TensorFlow.
    using U = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                 std::type_identity<T>>;
    for (int64_t i = 0; i < size; ++i) {
      T* at = value->data<T>() + to + i;
      const T update = updates.data<T>()[from + i];
      if (change == Change::kAdd || change == Change::kSubtract ||
          change == Change::kMultiply) {
        *at = static_cast<T>(Changed<typename U::type>(
            change, static_cast<typename U::type>(*at),
            static_cast<typename U::type>(update)));
      } else {
        *at = Changed<T>(change, *at, update);
      }
    }
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

// Updates row indices[i] of the value by row i; a scalar updates all of them.
absl::Status ScatterRows(Change change, const Tensor& indices,
                         const Tensor& updates, Tensor* value) {
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(*value, updates));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, indices.AsInt64s());
  if (value->rank() < 1) {
    return absl::InvalidArgumentError("a scalar has no rows to update");
  }
  const int64_t row = DimProduct(value->shape(), 1, value->rank());
  int64_t wanted = 0;
  if (__builtin_mul_overflow(static_cast<int64_t>(rows.size()), row, &wanted) ||
      updates.num_elements() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("updates of shape ", updates.shape().ToString(),
                     " do not fit ", rows.size(), " rows of a variable of ",
                     "shape ", value->shape().ToString()));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= value->dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "index ", rows[i], " is not in [0, ", value->dim(0), ")"));
    }
    OPTFARM_RETURN_IF_ERROR(ChangeElements(change, updates,
                                           static_cast<int64_t>(i) * row, row,
                                           rows[i] * row, value));
  }
  return absl::OkStatus();
}

// Each vector along the last axis of `indices` names a slice of the value.
absl::Status ScatterSlices(Change change, const Tensor& indices,
                           const Tensor& updates, Tensor* value) {
  OPTFARM_RETURN_IF_ERROR(RequireSameDtype(*value, updates));
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<int64_t> at, indices.AsInt64s());
  const int64_t depth =
      indices.rank() == 0 ? 1 : indices.dim(indices.rank() - 1);
  if (depth < 1 || depth > value->rank()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "indices of shape ", indices.shape().ToString(),
        " do not lead into a variable of shape ", value->shape().ToString()));
  }
  const int64_t slice =
      DimProduct(value->shape(), static_cast<int>(depth), value->rank());
  const int64_t count = static_cast<int64_t>(at.size()) / depth;
  int64_t wanted = 0;
  if (__builtin_mul_overflow(count, slice, &wanted) ||
      updates.num_elements() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("updates of shape ", updates.shape().ToString(),
                     " do not fit ", count, " slices of ", slice, " elements"));
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t index = at[i * depth + d];
      const int64_t size = value->dim(static_cast<int>(d));
      if (index < 0 || index >= size) {
        return absl::InvalidArgumentError(
            absl::StrCat("index ", index, " is not in [0, ", size, ")"));
      }
      offset = offset * size + index;
    }
    OPTFARM_RETURN_IF_ERROR(ChangeElements(change, updates, i * slice, slice,
                                           offset * slice, value));
  }
  return absl::OkStatus();
}

using ScatterFunction = absl::Status (*)(Change, const Tensor&, const Tensor&,
                                         Tensor*);

template <ScatterFunction kScatter, Change kChange>
absl::StatusOr<std::unique_ptr<Kernel>> MakeScatter(
    const tensorflow::NodeDef& node) {
  for (const char* attr : {"T", "dtype"}) {
    if (kChange == Change::kSet) continue;
    OPTFARM_RETURN_IF_ERROR(RequireTypeAttr(node, attr, OPTFARM_NUMBER_TYPES));
  }
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    return ChangeReferred(context, [&](Tensor* value) {
      return kScatter(kChange, context->input(1), context->input(2), value);
    });
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
  catalog->Add("Variable", MakeVariable, /*is_pure=*/false);
  catalog->Add("VariableV2", MakeVariable, /*is_pure=*/false);
  catalog->Add("VarHandleOp", MakeVariable, /*is_pure=*/false);
  catalog->Add("TemporaryVariable", MakeTemporary, /*is_pure=*/false);
  catalog->Add("DestroyTemporaryVariable", MakeRead, /*is_pure=*/false);
  catalog->Add("ReadVariableOp", MakeRead, /*is_pure=*/false);
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
  catalog->Add("ScatterUpdate", MakeScatter<ScatterRows, Change::kSet>,
               /*is_pure=*/false);
  catalog->Add("ScatterAdd", MakeScatter<ScatterRows, Change::kAdd>,
               /*is_pure=*/false);
  catalog->Add("ScatterSub", MakeScatter<ScatterRows, Change::kSubtract>,
               /*is_pure=*/false);
  catalog->Add("ResourceScatterUpdate", MakeScatter<ScatterRows, Change::kSet>,
               /*is_pure=*/false);
  catalog->Add("ResourceScatterAdd", MakeScatter<ScatterRows, Change::kAdd>,
               /*is_pure=*/false);
  catalog->Add("ScatterNdUpdate", MakeScatter<ScatterSlices, Change::kSet>,
               /*is_pure=*/false);
  catalog->Add("ScatterNdAdd", MakeScatter<ScatterSlices, Change::kAdd>,
               /*is_pure=*/false);
  catalog->Add("ScatterNdSub", MakeScatter<ScatterSlices, Change::kSubtract>,
               /*is_pure=*/false);
  catalog->Add("ScatterMul", MakeScatter<ScatterRows, Change::kMultiply>,
               /*is_pure=*/false);
  catalog->Add("ScatterDiv", MakeScatter<ScatterRows, Change::kDivide>,
               /*is_pure=*/false);
  catalog->Add("ScatterMin", MakeScatter<ScatterRows, Change::kMin>,
               /*is_pure=*/false);
  catalog->Add("ScatterMax", MakeScatter<ScatterRows, Change::kMax>,
               /*is_pure=*/false);
}

}  // namespace optfarm::runtime
