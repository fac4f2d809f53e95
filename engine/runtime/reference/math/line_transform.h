// Fourier transforms of lines of one length, which may be any: powers of two by
// halving, others by Bluestein's convolution.

#ifndef OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_LINE_TRANSFORM_H_
#define OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_LINE_TRANSFORM_H_

#include <complex>
#include <cstddef>
#include <cstdint>

#include "engine/runtime/core/counted_vector.h"

namespace optfarm::runtime {

using Complex128 = std::complex<double>;

// Elements of one transform: padding to a length takes no more memory.
inline constexpr int64_t kMaxTransformLength = int64_t{1} << 22;

// Transforms of lines of one size, and their roots of one, which are found once
// for all lines.
class LineTransform {
 public:
  // `sign` is -1 for the transform, 1 for its inverse without scale.
  LineTransform(size_t size, int sign);

  // In place. REQUIRES: `line` has the size.
  void Run(CountedVector<Complex128>* line) const;

 private:
  void AddChirp();
  // REQUIRES: there are padded_ values.
  void RunPowerOfTwo(CountedVector<Complex128>* values, int sign) const;

  size_t size_;
  int sign_;
  // The size itself, or the power of two for Bluestein's convolution.
  size_t padded_;
  CountedVector<Complex128> roots_;
  // Of other sizes than powers of two: factors of the values, and the transform
  // of what they are convolved with.
  CountedVector<Complex128> chirp_;
  CountedVector<Complex128> spectrum_;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_REFERENCE_MATH_LINE_TRANSFORM_H_
