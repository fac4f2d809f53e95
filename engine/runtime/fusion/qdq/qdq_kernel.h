// What the kernels of explicitly quantized graphs share: ops between
// DequantizeLinear and QuantizeLinear that are computed on the quantized values
// themselves.
//
// The micro-kernels take unsigned values. Those of int8 tensors become unsigned
// by a change of their highest bit, and their zero point grows by 128. Where
// all who make and read a tensor know of it, it stays unsigned between them
// (HoldOutputUnsigned, HoldInputUnsigned) and nobody changes bits.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_KERNEL_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_KERNEL_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/scratch.h"
#include "engine/runtime/core/tensor.h"
#include "engine/runtime/plan/step_chain.h"

namespace optfarm::runtime {

// How a tensor of int8 or uint8 stands for real numbers:
// real = (value - zero_point) * scale.
struct QdqTensor {
  DataType dtype = tensorflow::DT_UINT8;
  float scale = 1;
  int32_t zero_point = 0;

  bool is_signed() const { return dtype == tensorflow::DT_INT8; }
  // Of the unsigned values.
  int32_t unsigned_zero() const {
    return is_signed() ? zero_point + 128 : zero_point;
  }
  friend bool operator==(const QdqTensor&, const QdqTensor&) = default;
};

// What a kernel runs for inputs that it does not serve.
struct QdqSteps {
  StepChain chain;
  // Whether the steps begin with the quantized values; else they read floats.
  bool read_values = false;
};

// Unsigned values of signed ones, and back; `out` may be `in`.
void FlipSigns(const uint8_t* in, int64_t count, ThreadPool* pool,
               uint8_t* out);

// A role (kernel_role.h): reads and makes quantized values.
class QdqKernel : public Kernel {
 public:
  // The inputs are quantized tensors, one after the other; output 0 is the only
  // one.
  QdqKernel(std::vector<QdqTensor> ins, QdqTensor out, QdqSteps steps)
      : ins_(std::move(ins)), out_(out), steps_(std::move(steps)) {}

  absl::Status Compute(KernelContext* context) const final;

  // REQUIRES: nothing runs yet.
  void HoldInputUnsigned(int i) { held_[i] = true; }
  void HoldOutputUnsigned() { is_out_held_ = true; }

 protected:
  // Where an input's unsigned values lie. They may be a copy.
  struct Values {
    const uint8_t* data = nullptr;
    std::optional<Scratch<uint8_t>> copy;
  };

  // False for inputs that the kernel does not serve: then the steps compute.
  // Output 0 is to be allocated by Allocate, and finished by Finish once its
  // unsigned values are there.
  virtual absl::StatusOr<bool> ComputeUnsigned(
      KernelContext* context) const = 0;

  const QdqTensor& in(int i) const { return ins_[i]; }
  int in_count() const { return static_cast<int>(ins_.size()); }
  const QdqTensor& out() const { return out_; }
  void Read(int i, const KernelContext& context, Values* values) const;
  absl::StatusOr<Tensor*> Allocate(const Shape& shape,
                                   KernelContext* context) const {
    return context->AllocateOutput(0, out_.dtype, shape);
  }
  void Finish(Tensor* made, KernelContext* context) const;

 private:
  absl::Status RunSteps(KernelContext* context) const;
  // What the steps read as input `i`.
  absl::StatusOr<Tensor> InputOfSteps(int i, KernelContext* context) const;

  const std::vector<QdqTensor> ins_;
  const QdqTensor out_;
  const QdqSteps steps_;
  std::vector<bool> held_ = std::vector<bool>(ins_.size(), false);
  bool is_out_held_ = false;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_KERNEL_H_
