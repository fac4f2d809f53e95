// Finds ops between DequantizeLinear and QuantizeLinear and puts kernels on
// quantized values in their place. qdq_fusion.cc runs all of it; the parts by
// kind are in qdq_fuse_layers.cc and qdq_fuse_elements.cc.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_FUSER_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_FUSER_H_

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/runtime/fusion/qdq/qdq_elements.h"
#include "engine/runtime/fusion/qdq/qdq_kernel.h"
#include "engine/runtime/fusion/qdq/qdq_reader.h"
#include "engine/runtime/operators/int8_kernels.h"
#include "engine/runtime/plan/plan_editor.h"

namespace optfarm::runtime {

// A QuantizeLinear and the clips before it.
struct QdqTail {
  QdqTensor out;
  int output = kNoSlot;
  // In the plan's order.
  std::vector<int> members;
  // What is clipped.
  int slot = kNoSlot;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  QdqBounds bounds() const;
};

// What becomes a step.
struct QdqMatch {
  std::vector<int> members;
  std::vector<QdqSource> sources;
  // Whether the members begin with what dequantizes the sources.
  bool reads_values = false;
  int output = kNoSlot;
  // Of slots that dequantized constants are in.
  std::vector<ChainConstant> constants;
  // UNITS: bytes of packed weights.
  int64_t constant_bytes = 0;
};

// OWNERSHIP: the plan outlives it.
class QdqFuser {
 public:
  QdqFuser(const CpuFeatures& cpu, PlanEditor* plan)
      : plan_(*plan), kernels_(SelectInt8Kernels(cpu)) {}

  void Run();

 private:
  using MakeKernel = std::function<std::unique_ptr<Kernel>(QdqSteps steps)>;

  std::optional<QdqTail> ReadTail(int quantize, bool with_clips) const;
  // How the tail rounds halves: attribute `rounding` of QuantizeLinear.
  std::string Rounding(const QdqTail& tail) const;
  // The step that makes a slot which only `reader` reads; kNoStep for others.
  int OnlyMakerOf(int slot, int reader) const;
  // False when the members cannot become one step.
  bool Replace(QdqMatch match, const MakeKernel& make);

  // Each is true when it replaced the tail and what is before it.
  bool FuseLayer(const QdqTail& tail);
  bool FuseSum(const QdqTail& tail);
  // Step `number`: a sum or product of `source` and the constant of a slot.
  bool FuseSumWithConstant(const QdqTail& tail, int number,
                           const QdqSource& source, int slot);
  bool FusePool(const QdqTail& tail);
  bool FuseTable(const QdqTail& tail);
  bool FuseMovement(const QdqTail& tail);
  // A MaxPool of quantized values.
  bool FuseBarePool(int number);

  void DropUnread();
  int MovedInputs(int number) const;
  // nullptr for a step of another kind.
  QdqKernel* QdqKernelOf(int number) const;
  void HoldUnsigned();

  PlanEditor& plan_;
  const Int8Kernels kernels_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_QDQ_QDQ_FUSER_H_
