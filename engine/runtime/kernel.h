// What a kernel is. A kernel computes one op on the CPU with TensorFlow's
// meaning and arithmetic. It is made once per node, when the model is loaded,
// and everything that can be known then (attributes, dtypes) is checked then;
// inputs are checked at each run, because a model is untrusted.
//
// One file per family under kernels/; each has one function that adds its
// kernels to the catalog (kernels/catalog.cc lists them all).

#ifndef OPTFARM_ENGINE_RUNTIME_KERNEL_H_
#define OPTFARM_ENGINE_RUNTIME_KERNEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/runtime/tensor.h"
#include "engine/runtime/thread_pool.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace optfarm::runtime {

// One execution of one node. OWNERSHIP: lives for one Compute call.
class KernelContext {
 public:
  KernelContext(absl::Span<Tensor> inputs, absl::Span<Tensor> outputs,
                ThreadPool* pool,
                const std::function<void(absl::string_view)>* print)
      : inputs_(inputs), outputs_(outputs), pool_(pool), print_(print) {}

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // REQUIRES: 0 <= i < num_inputs(). Only Merge sees inputs without a value.
  const Tensor& input(int i) const { return inputs_[i]; }

  // Stores an output. An output that stays unset is dead (Switch).
  void SetOutput(int i, Tensor value) { outputs_[i] = std::move(value); }
  // Allocates output i and returns it for writing.
  absl::StatusOr<Tensor*> AllocateOutput(int i, DataType dtype,
                                         const Shape& shape);
  // As AllocateOutput, but takes over the buffer of input `from` when nobody
  // else needs it and dtype size and element count agree. The content is then
  // the input's: for kernels that read element k before they write element k.
  absl::StatusOr<Tensor*> ForwardOrAllocateOutput(int i, int from,
                                                  DataType dtype,
                                                  const Shape& shape);

  // The same execution over other tensors: for a kernel around a kernel.
  KernelContext WithTensors(absl::Span<Tensor> inputs,
                            absl::Span<Tensor> outputs) const {
    KernelContext context(*this);
    context.inputs_ = inputs;
    context.outputs_ = outputs;
    return context;
  }

  ThreadPool* pool() const { return pool_; }
  // Where Print writes one line (without newline).
  void Print(absl::string_view line) const { (*print_)(line); }

 private:
  absl::Span<Tensor> inputs_;
  absl::Span<Tensor> outputs_;
  ThreadPool* pool_;
  const std::function<void(absl::string_view)>* print_;
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
  // REQUIRES: no kernel for `op` was added before.
  void Add(absl::string_view op, KernelFactory make, bool is_pure = true);
  // nullptr when there is no kernel for `op`.
  const KernelEntry* Find(absl::string_view op) const;
  // All ops, sorted.
  std::vector<std::string> Ops() const;

 private:
  absl::flat_hash_map<std::string, KernelEntry> entries_;
  KernelFamily family_;
};

// All kernels of this build. OWNERSHIP: lives for the whole process.
const KernelCatalog& AllKernels();

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

// Runs one node alone, without a session.
// ERRORS: Unimplemented without a kernel; InvalidArgument for a number of
// inputs that the op does not take; else the kernel's own.
absl::StatusOr<std::vector<Tensor>> EvaluateNode(
    const tensorflow::NodeDef& node, absl::Span<const Tensor> inputs,
    int num_outputs);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_KERNEL_H_
