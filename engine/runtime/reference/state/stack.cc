// Stacks: what a loop leaves for one that runs its iterations backwards.

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/state/handles.h"

namespace optfarm::runtime {
namespace {

class Stack final : public Resource {
 public:
  // A negative maximum is none.
  Stack(DataType dtype, int64_t max_size) : dtype_(dtype), max_(max_size) {}
  absl::string_view kind() const override { return "stack"; }

  absl::Status Push(const Tensor& value) {
    // A handle in here could lead back to this stack.
    if (value.dtype() != dtype_ || value.is_handle()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the stack is for ", graph::DataTypeName(dtype_),
                       ", got ", value.DebugString(0)));
    }
    absl::MutexLock lock(&mutex_);
    if (max_ >= 0 && static_cast<int64_t>(values_.size()) >= max_) {
      return absl::InvalidArgumentError(
          absl::StrCat("the stack is full: it holds ", max_, " values"));
    }
    values_.push_back(value);
    return absl::OkStatus();
  }

  absl::StatusOr<Tensor> Pop() {
    absl::MutexLock lock(&mutex_);
    if (values_.empty()) {
      return absl::InvalidArgumentError("the stack is empty");
    }
    Tensor value = std::move(values_.back());
    values_.pop_back();
    return value;
  }

  void Clear() {
    absl::MutexLock lock(&mutex_);
    values_.clear();
  }

 private:
  const DataType dtype_;
  const int64_t max_;
  absl::Mutex mutex_;
  std::vector<Tensor> values_ ABSL_GUARDED_BY(mutex_);
};

// The first version has no limit, and an input less.
absl::StatusOr<std::unique_ptr<Kernel>> MakeStack(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType dtype,
                           graph::GetType(node, "elem_type"));
  return MakeKernel([dtype](KernelContext* context) -> absl::Status {
    int64_t max_size = -1;
    if (context->num_inputs() > 0) {
      OPTFARM_ASSIGN_OR_RETURN(max_size,
                               ReadInteger(context->input(0), "max_size"));
    }
    context->SetOutput(0, MakeHandle(std::make_shared<Stack>(dtype, max_size)));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePush(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(Stack * stack,
                             ResourceOf<Stack>(*context, 0, "stack"));
    OPTFARM_RETURN_IF_ERROR(stack->Push(context->input(1)));
    context->SetOutput(0, context->input(1));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakePop(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 1));
    OPTFARM_ASSIGN_OR_RETURN(Stack * stack,
                             ResourceOf<Stack>(*context, 0, "stack"));
    OPTFARM_ASSIGN_OR_RETURN(Tensor value, stack->Pop());
    context->SetOutput(0, std::move(value));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeClose(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(Stack * stack,
                             ResourceOf<Stack>(*context, 0, "stack"));
    stack->Clear();
    return absl::OkStatus();
  });
}

}  // namespace

void AddStackKernels(KernelCatalog* catalog) {
  catalog->Add("Stack", MakeStack, /*is_pure=*/false);
  catalog->Add("StackV2", MakeStack, /*is_pure=*/false);
  catalog->Add("StackPush", MakePush, /*is_pure=*/false);
  catalog->Add("StackPushV2", MakePush, /*is_pure=*/false);
  catalog->Add("StackPop", MakePop, /*is_pure=*/false);
  catalog->Add("StackPopV2", MakePop, /*is_pure=*/false);
  catalog->Add("StackClose", MakeClose, /*is_pure=*/false);
  catalog->Add("StackCloseV2", MakeClose, /*is_pure=*/false);
}

}  // namespace optfarm::runtime
