// A value that is joined with others along channels, written at once where the
// joined value has it: the first of the kernels that make the values allocates
// all of it, each writes its part, and hands it on to the next.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_JOINED_PART_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_JOINED_PART_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/runtime/core/kernel.h"
#include "engine/runtime/core/quantization.h"
#include "engine/runtime/plan/step_chain.h"

namespace optfarm::runtime {

// UNITS: channels.
struct JoinedPart {
  int64_t begin = 0;
  // Of the joined value; 0 for a value of its own.
  int64_t all = 0;
  // Another kernel made the joined value: it is the last input.
  bool comes_later = false;
};

// Where a kernel stores elements of [batch, height, width, channels].
template <typename T>
struct PlaceOf {
  T* data = nullptr;
  // UNITS: elements from pixel to pixel.
  int64_t pixel_stride = 0;
};
using FloatPlace = PlaceOf<float>;
using QuantizedPlace = PlaceOf<uint8_t>;

// A role (kernel_role.h): a kernel whose result can be joined to others'.
class JoinableKernel : public Kernel {
 public:
  // Whether this kernel's can; asked when the plan is made.
  virtual bool MayBePart() const { return true; }
  // Channels of the result for an image of so many; 0 for what is not known.
  virtual int64_t ChannelsFor(int64_t image) const = 0;
  // What quantized values of the result stand for in every run; nothing for
  // floats.
  virtual std::optional<Range> QuantizedRange() const { return std::nullopt; }
  // REQUIRES: nothing runs yet.
  void SetPart(JoinedPart part) { part_ = part; }

 protected:
  // Output 0, or the kernel's part of it; `shape` is that of the part alone and
  // has four dimensions. ERRORS: InvalidArgument when it does not fit what it
  // is joined with.
  absl::StatusOr<FloatPlace> AllocatePart(const Shape& shape,
                                          KernelContext* context) const;
  absl::StatusOr<QuantizedPlace> AllocateQuantizedPart(
      const Shape& shape, KernelContext* context) const;
  // Computes the outputs by the steps instead.
  absl::Status RunSteps(const StepChain& steps, KernelContext* context) const;
  bool is_part() const { return part_.all > 0; }
  // The last inputs that are not the kernel's own.
  int other_inputs() const { return part_.comes_later ? 1 : 0; }

 private:
  // The whole of output 0.
  absl::StatusOr<Tensor*> AllocateWhole(DataType dtype, const Shape& shape,
                                        KernelContext* context) const;

  JoinedPart part_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_JOINED_PART_H_
