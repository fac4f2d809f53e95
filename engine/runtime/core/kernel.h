// What a kernel is. A kernel computes one op on the CPU with TensorFlow's
// meaning and arithmetic. It is made once per node, when the model is loaded,
// and everything that can be known then (attributes, dtypes) is checked then;
// inputs are checked at each run, because a model is untrusted.
//
// One file per family under reference/; each has one function that adds its
// kernels to the catalog (reference/catalog.cc lists them all).

#ifndef OPTFARM_ENGINE_RUNTIME_CORE_KERNEL_H_
#define OPTFARM_ENGINE_RUNTIME_CORE_KERNEL_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/runtime/core/kernel_selection.h"
#include "engine/runtime/core/resource.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/core/thread_pool.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// What kernels share within one run. OWNERSHIP: borrowed.
struct KernelEnvironment {
  ThreadPool* pool = nullptr;
  // Receives what Print writes, one line at a time, without newline.
  const std::function<void(absl::string_view)>* print = nullptr;
  // Where variables and tables live; nullptr where there are none.
  ResourceContainer* resources = nullptr;
};

// One execution of one node. OWNERSHIP: lives for one Compute call.
class KernelContext {
 public:
  KernelContext(absl::Span<Tensor* const> inputs,
                absl::Span<Tensor* const> outputs,
                const KernelEnvironment& environment)
      : inputs_(inputs), outputs_(outputs), environment_(environment) {}
  // Over tensors of the caller's own, all of which may be taken over.
  KernelContext(absl::Span<Tensor> inputs, absl::Span<Tensor> outputs,
                const KernelEnvironment& environment);
  KernelContext(absl::Span<Tensor> inputs, absl::Span<Tensor> outputs,
                ThreadPool* pool,
                const std::function<void(absl::string_view)>* print)
      : KernelContext(inputs, outputs,
                      KernelEnvironment{pool, print, nullptr}) {}
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // REQUIRES: 0 <= i < num_inputs().
  const Tensor& input(int i) const { return *inputs_[i]; }

  // Stores an output. An output that stays unset is dead (Switch).
  void SetOutput(int i, Tensor value) { *outputs_[i] = std::move(value); }
  // Allocates output i and returns it for writing.
  absl::StatusOr<Tensor*> AllocateOutput(int i, DataType dtype,
                                         const Shape& shape);
  // As AllocateOutput, but takes over the buffer of input `from` when nobody
  // else needs it and dtype size and element count agree. The content is then
  // the input's: for kernels that read element k before they write element k.
  absl::StatusOr<Tensor*> ForwardOrAllocateOutput(int i, int from,
                                                  DataType dtype,
                                                  const Shape& shape);
  // Whether nobody reads input i after this node or under another name, so
  // that its buffer may be written.
  bool MayReuse(int i) const {
    return (reusable_ == nullptr || (*reusable_)[i]) &&
           inputs_[i]->IsSoleOwner();
  }
  // Inputs that later steps read are not to be taken over. OWNERSHIP: borrowed.
  void set_reusable(const std::vector<bool>* reusable) { reusable_ = reusable; }

  // The same execution over other tensors: for a kernel around a kernel.
  KernelContext WithTensors(absl::Span<Tensor> inputs,
                            absl::Span<Tensor> outputs) const {
    return KernelContext(inputs, outputs, environment_);
  }

  const KernelEnvironment& environment() const { return environment_; }
  ThreadPool* pool() const { return environment_.pool; }
  ResourceContainer* resources() const { return environment_.resources; }
  // Where Print writes one line (without newline).
  void Print(absl::string_view line) const { (*environment_.print)(line); }

 private:
  // Only for tensors that do not come as pointers.
  absl::InlinedVector<Tensor*, 8> own_;
  absl::Span<Tensor* const> inputs_;
  absl::Span<Tensor* const> outputs_;
  KernelEnvironment environment_;
  const std::vector<bool>* reusable_ = nullptr;
};

// THREADS: Compute may run on many threads at once; a kernel has no state that
// changes (Print counts atomically).
class Kernel {
 public:
  virtual ~Kernel() = default;
  // ERRORS: InvalidArgument for inputs that do not fit; the executor adds the
  // node's name and op to the message.
  virtual absl::Status Compute(KernelContext* context) const = 0;
};

// Computes, and makes a status of what long loops and working memory throw.
// ERRORS: the kernel's; Cancelled or DeadlineExceeded when its run is to end;
// ResourceExhausted when there is no memory.
absl::Status ComputeOrLeave(const Kernel& kernel, KernelContext* context);

// Makes a kernel from a node's attributes.
// ERRORS: InvalidArgument for a bad attribute; Unimplemented for a dtype or an
// attribute value that is not supported, saying which. Attributes that the
// node lacks have TensorFlow's default.
using KernelFactory =
    absl::StatusOr<std::unique_ptr<Kernel>> (*)(const tensorflow::NodeDef&);

// Kernels of one kind, which share one file and one arithmetic.
struct KernelFamily {
  absl::string_view name;
  // What TensorFlow's numbers come from and how ours are made, in one line.
  absl::string_view arithmetic;
  // Its kernels write over an input of the output's dtype and shape when nobody
  // reads it any more.
  bool writes_over_inputs = false;
};

struct KernelEntry {
  KernelFactory make = nullptr;
  // The same inputs give the same outputs, and nothing else happens: the
  // executor and fold_constants may run it ahead of time.
  bool is_pure = true;
  KernelFamily family;

  // As `make`; a kernel that has no arithmetic for half or bfloat16 is made
  // for float, between conversions of its inputs and outputs.
  absl::StatusOr<std::unique_ptr<Kernel>> Make(
      const tensorflow::NodeDef& node) const;
};

class KernelCatalog {
 public:
  // The family of the kernels that are added from now on.
  void BeginFamily(const KernelFamily& family) { family_ = family; }
  // Adds a kernel if this build is to have it (kernel_selection.h). With a
  // literal, code that is not selected leaves no trace in the program.
  // REQUIRES: no kernel for `op` was added before.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void Add(OpLiteral op, KernelFactory make,
                                        bool is_pure = true) {
    if (op.is_selected()) AddSelected(op.name(), make, is_pure);
  }
  // The same for names that are put together at run time.
  template <typename Name>
  requires(std::is_convertible_v<const Name&, absl::string_view> &&
           !std::is_array_v<Name>) void Add(const Name& op, KernelFactory make,
                                            bool is_pure = true) {
    const absl::string_view name = op;
    const std::string_view word(name.data(), name.size());
    if (IsOpSelected(word)) AddSelected(word, make, is_pure);
  }
  // nullptr when there is no kernel for `op`.
  const KernelEntry* Find(absl::string_view op) const;
  // All ops, sorted.
  std::vector<std::string> Ops() const;

 private:
  // Cold, and with it all functions that add kernels: they run once each and
  // stand together in the program, away from the kernels.
  ABSL_ATTRIBUTE_COLD void AddSelected(std::string_view op, KernelFactory make,
                                       bool is_pure);

  absl::flat_hash_map<std::string, KernelEntry> entries_;
  KernelFamily family_;
};

// A kernel from a function, for ops whose attributes matter not at all or are
// bound when it is made:
//   return MakeKernel([alpha](KernelContext* c) -> absl::Status {...});
template <typename Function>
std::unique_ptr<Kernel> MakeKernel(Function function) {
  class FunctionKernel final : public Kernel {
   public:
    explicit FunctionKernel(Function f) : function_(std::move(f)) {}
    absl::Status Compute(KernelContext* context) const override {
      return function_(context);
    }

   private:
    Function function_;
  };
  return std::make_unique<FunctionKernel>(std::move(function));
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_CORE_KERNEL_H_
