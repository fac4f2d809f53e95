// A depthwise convolution and the convolution of single pixels behind it, a few
// lines at a time: what the first makes of them is still near when the second
// reads it.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_SEPARABLE_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_SEPARABLE_H_

#include <memory>
#include <optional>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/operators/float_panels.h"
#include "engine/runtime/operators/float_windows.h"

namespace optfarm::runtime {

// A kernel that can make some lines of its result alone.
class LineMaker {
 public:
  virtual ~LineMaker() = default;
  // All but where the result goes; nothing for an image that it leaves to
  // others.
  virtual std::optional<WindowSlide> PlanSlide(const Tensor& image) const = 0;
};

// A kernel that computes each pixel of its result from one of its image.
class PixelLayer {
 public:
  virtual ~PixelLayer() = default;
  // For so many rows (pixels): all but their number and where they come from
  // and go to; `next` is known. Weights that are not kept are in `streamed`.
  // Nothing for pixels of another size, or when there is no memory.
  virtual std::optional<FloatProduct> PlanProduct(int64_t channels,
                                                  int64_t rows,
                                                  ThreadPool* pool,
                                                  Tensor* streamed) const = 0;
  // Whether its weights are so few that its image is likely to be large.
  virtual bool IsSmall() const = 0;
};

// `depthwise` is `lines`, and `pixelwise` is `pixels`.
struct SeparableParts {
  std::unique_ptr<Kernel> depthwise;
  const LineMaker* lines = nullptr;
  std::unique_ptr<Kernel> pixelwise;
  const PixelLayer* pixels = nullptr;
};

// A kernel with the inputs of the first and the output of the second. Gives the
// bits of one after the other, which is what it does where the image is small.
std::unique_ptr<Kernel> MakeSeparable(SeparableParts parts);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_SEPARABLE_H_
