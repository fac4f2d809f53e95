// 3x3 convolutions by Winograd's filtering (winograd.h), on panels that are
// packed as for plain ones.

#ifndef OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_CONVOLUTION_H_
#define OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_CONVOLUTION_H_

#include <cstdint>

#include "engine/runtime/core/thread_pool.h"
#include "engine/runtime/operators/float_panels.h"
#include "engine/runtime/operators/winograd_images.h"
#include "engine/runtime/ukernels/float/winograd.h"

namespace optfarm::runtime {

// Whether it can be done for these images, with so many filters, and is likely
// to be faster with these transforms than plain sums.
bool FavorsWinograd(const WinogradTransforms& transforms,
                    const WinogradImages& images, int64_t filters);

// Computes the product whose rows are the pixels of the result; its taps and
// runs are not looked at. The result does not depend on how many threads there
// are. REQUIRES: FavorsWinograd().
void ConvolveByWinograd(const WinogradTransforms& transforms,
                        const FloatProduct& product,
                        const WinogradImages& images, ThreadPool* pool);

// A role of kernels that compute convolutions.
class WinogradLayer {
 public:
  virtual ~WinogradLayer() = default;
  // Whether there are images for which FavorsWinograd() can be true.
  virtual bool MayUseWinograd() const = 0;
  // REQUIRES: nothing runs yet.
  void UseWinograd(const WinogradTransforms* transforms) {
    transforms_ = transforms;
  }

 protected:
  // nullptr for none.
  const WinogradTransforms* transforms() const { return transforms_; }

 private:
  const WinogradTransforms* transforms_ = nullptr;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_OPERATORS_WINOGRAD_CONVOLUTION_H_
