// A convolution and the pool that alone reads it, a few lines at a time: what
// the first makes of them is still near when the second reads it, and is never
// written as a whole.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_POOLED_CONVOLUTION_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_POOLED_CONVOLUTION_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/runtime/core/kernel.h"
#include "engine/runtime/operators/float_panels.h"
#include "engine/runtime/operators/float_windows.h"

namespace optfarm::runtime {

// A kernel that can make some lines of a convolution's result alone.
class LineLayer {
 public:
  struct Plan {
    Window window;
    int64_t batch = 0;
    // Of all pixels, but for where it goes.
    FloatProduct product;
    // Weights that are not kept.
    Tensor streamed;
  };

  virtual ~LineLayer() = default;
  // Nothing for an image that it leaves to others.
  virtual std::optional<Plan> PlanLines(const Tensor& image,
                                        ThreadPool* pool) const = 0;
  // Lines [begin, end), counted over batch and height, one behind the other
  // from `out` on; `next` is fetched by the last tiles.
  virtual void MakeLines(const Plan& plan, const Tensor& image, int64_t begin,
                         int64_t end, FirstWeights::Place next,
                         float* out) const = 0;
};

// A kernel that slides a window over what it is given.
class PoolLayer {
 public:
  virtual ~PoolLayer() = default;
  // All but where the image is and where the result goes; nothing for an image
  // that it leaves to others.
  virtual std::optional<WindowSlide> PlanPool(const Shape& image) const = 0;
};

// `convolution` is `lines`, and `pool` is `slides`.
struct PooledParts {
  std::unique_ptr<Kernel> convolution;
  const LineLayer* lines = nullptr;
  std::unique_ptr<Kernel> pool;
  const PoolLayer* slides = nullptr;
};

// A kernel with the inputs of the first and the output of the second. Gives the
// bits of one after the other, which is what it does where the image is small.
std::unique_ptr<Kernel> MakePooledConvolution(PooledParts parts);

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_POOLED_CONVOLUTION_H_
