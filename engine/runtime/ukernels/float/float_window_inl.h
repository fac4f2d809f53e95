// Windows for any vector type (float_tile_inl.h says what a vector has). Some
// pixels are computed at once, so that sums do not wait for one another.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_WINDOW_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_WINDOW_INL_H_

#include <cstdint>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/float/float_tile_inl.h"
#include "engine/runtime/ukernels/float/float_window.h"

namespace optfarm::runtime {

template <typename Vector>
struct DepthwiseStep {
  using Register = typename Vector::Register;
  static OPTFARM_INLINE Register Begin() { return Vector::Zero(); }
  static OPTFARM_INLINE Register Add(Register sum, Register x, Register w) {
    return Vector::MultiplyAdd(x, w, sum);
  }
  static OPTFARM_INLINE Register End(Register sum, Register) { return sum; }
  static constexpr bool kHasWeights = true;
};

template <typename Vector>
struct MaxStep {
  using Register = typename Vector::Register;
  static OPTFARM_INLINE Register Begin() {
    static constexpr float kLowest = -3.4028234663852886e38f;
    return Vector::Broadcast(&kLowest);
  }
  static OPTFARM_INLINE Register Add(Register sum, Register x, Register) {
    return Vector::Max(x, sum);
  }
  static OPTFARM_INLINE Register End(Register sum, Register) { return sum; }
  static constexpr bool kHasWeights = false;
};

template <typename Vector>
struct AverageStep {
  using Register = typename Vector::Register;
  static OPTFARM_INLINE Register Begin() { return Vector::Zero(); }
  static OPTFARM_INLINE Register Add(Register sum, Register x, Register) {
    return Vector::Add(sum, x);
  }
  static OPTFARM_INLINE Register End(Register sum, Register count) {
    return Vector::Divide(sum, count);
  }
  static constexpr bool kHasWeights = false;
};

template <typename Vector, typename Step>
struct WindowOf {
  using Register = typename Vector::Register;
  static constexpr int kLanes = Vector::kLanes;
  template <int kPixels>
  using Tile = TileOf<Vector, kPixels, 1>;

  static OPTFARM_INLINE Register Load(const float* p, int lanes) {
    return lanes == kLanes ? Vector::Load(p) : Vector::LoadSome(p, lanes);
  }

  // kPixels pixels from `pixel` on, channels [c, c + lanes).
  template <int kPixels>
  static OPTFARM_INLINE void Block(const FloatWindow& t, int64_t pixel,
                                   int64_t c, int lanes) {
    using Each = Tile<kPixels>;
    Each sums;
    Each::template Each<kPixels>([&](auto m) __attribute__((always_inline)) {
      sums.sums[m][0] = Step::Begin();
    });
    const int64_t stride = t.pixel_stride;
    const int64_t at = pixel * stride + c;
    for (int64_t cell = 0; cell < t.cells; ++cell) {
      const float* in = t.inputs[cell] + at;
      Register w = Vector::Zero();
      if constexpr (Step::kHasWeights) w = Load(t.weights[cell] + c, lanes);
      Each::template Each<kPixels>([&](auto m) __attribute__((always_inline)) {
        sums.sums[m][0] =
            Step::Add(sums.sums[m][0], Load(in + m * stride, lanes), w);
      });
    }
    const float cells = static_cast<float>(t.cells);
    const Register count = Vector::Broadcast(&cells);
    Each::template Each<kPixels>([&](auto m) __attribute__((always_inline)) {
      sums.sums[m][0] = Step::End(sums.sums[m][0], count);
    });
    if (t.scale != nullptr) {
      const Register scale = Load(t.scale + c, lanes);
      const Register bias =
          t.bias == nullptr ? Vector::Zero() : Load(t.bias + c, lanes);
      Each::template Each<kPixels>([&](auto m) __attribute__((always_inline)) {
        sums.sums[m][0] = Vector::MultiplyAdd(sums.sums[m][0], scale, bias);
      });
    } else if (t.bias != nullptr) {
      const Register bias = Load(t.bias + c, lanes);
      Each::template Each<kPixels>([&](auto m) __attribute__((always_inline)) {
        sums.sums[m][0] = Vector::Add(sums.sums[m][0], bias);
      });
    }
    sums.Rectify(t.rectifier);
    float* out = t.out + pixel * t.out_stride + c;
    Each::template Each<kPixels>([&](auto m) __attribute__((always_inline)) {
      if (lanes == kLanes) {
        Vector::Store(out + m * t.out_stride, sums.sums[m][0]);
      } else {
        Vector::StoreSome(out + m * t.out_stride, sums.sums[m][0], lanes);
      }
    });
  }

  template <int kPixels>
  static void AllChannels(const FloatWindow& t, int64_t pixel) {
    int64_t c = 0;
    for (; c + kLanes <= t.channels; c += kLanes) {
      Block<kPixels>(t, pixel, c, kLanes);
    }
    if (c < t.channels) {
      Block<kPixels>(t, pixel, c, static_cast<int>(t.channels - c));
    }
  }

  static void Run(const FloatWindow& t) {
    int64_t pixel = 0;
    for (; pixel + 7 <= t.pixels; pixel += 7) AllChannels<7>(t, pixel);
    for (; pixel + 4 <= t.pixels; pixel += 4) AllChannels<4>(t, pixel);
    for (; pixel < t.pixels; ++pixel) AllChannels<1>(t, pixel);
  }
};

template <typename Vector>
constexpr FloatWindows WindowsOf() {
  return {&WindowOf<Vector, DepthwiseStep<Vector>>::Run,
          &WindowOf<Vector, MaxStep<Vector>>::Run,
          &WindowOf<Vector, AverageStep<Vector>>::Run};
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_WINDOW_INL_H_
