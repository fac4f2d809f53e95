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
  // Vectors in a line of the cache: where pixels are far from one another, it
  // may be gone when the next of them is asked for. Pools are rarely worth the
  // code.
  static constexpr int kLine =
      Step::kHasWeights && kLanes < 16 ? 16 / kLanes : 1;
  static constexpr int kMostPixels = kLine == 1 ? 7 : 4;
  // A single pixel has more vectors, so that sums do not wait for one another.
  static constexpr int kMostVectors = Step::kHasWeights ? 4 : 1;

  static OPTFARM_INLINE Register Load(const float* p, int lanes) {
    return lanes == kLanes ? Vector::Load(p) : Vector::LoadSome(p, lanes);
  }

  // Vectors of channels from `c` on; only a single one may have fewer lanes.
  struct Channels {
    int64_t c;
    int lanes;
  };

  // Adds kRun cells that stand side by side to the sums of some pixels: each
  // input is loaded once, for all pixels that see it.
  template <int kRun, int kPixels, int kVectors>
  static OPTFARM_INLINE void AddRun(const FloatWindow& t, int64_t cell,
                                    int64_t at, Channels channels,
                                    TileOf<Vector, kPixels, kVectors>* sums) {
    using Tile = TileOf<Vector, kPixels, kVectors>;
    Register w[kRun][kVectors];
    if constexpr (Step::kHasWeights) {
      Tile::template Each<kRun>([&](auto k) __attribute__((always_inline)) {
        const float* weights = t.weights[cell + k] + channels.c;
        Tile::template Each<kVectors>([&](
            auto v) __attribute__((always_inline)) {
          w[k][v] = Load(weights + v * kLanes, channels.lanes);
        });
      });
    }
    const float* in = t.inputs[cell] + at;
    Tile::template Each<kPixels + kRun - 1>([&](
        auto i) __attribute__((always_inline)) {
      Tile::template Each<kVectors>([&](auto v) __attribute__((always_inline)) {
        const Register x =
            Load(in + i * t.pixel_stride + v * kLanes, channels.lanes);
        Tile::template Each<kRun>([&](auto k) __attribute__((always_inline)) {
          constexpr int kPixel = decltype(i)::value - decltype(k)::value;
          if constexpr (kPixel >= 0 && kPixel < kPixels) {
            sums->sums[kPixel][v] =
                Step::Add(sums->sums[kPixel][v], x, w[k][v]);
          }
        });
      });
    });
  }

  // Calls body(pixel, vector) for all sums.
  template <int kPixels, int kVectors, typename Body>
  static OPTFARM_INLINE void EachSum(Body body) {
    using Tile = TileOf<Vector, kPixels, kVectors>;
    Tile::template Each<kPixels>([&](auto m) __attribute__((always_inline)) {
      Tile::template Each<kVectors>([&](auto v) __attribute__((always_inline)) {
        body(m, v);
      });
    });
  }

  template <int kPixels, int kVectors, int kRun>
  static OPTFARM_INLINE void Block(const FloatWindow& t, int64_t pixel,
                                   Channels channels) {
    TileOf<Vector, kPixels, kVectors> tile;
    auto& sums = tile.sums;
    EachSum<kPixels, kVectors>([&](auto m, auto v) __attribute__((
        always_inline)) { sums[m][v] = Step::Begin(); });
    const int64_t c = channels.c;
    const int64_t at = pixel * t.pixel_stride + c;
    for (int64_t cell = 0; cell < t.cells; cell += kRun) {
      AddRun<kRun>(t, cell, at, channels, &tile);
    }
    const float cells = static_cast<float>(t.cells);
    const Register count = Vector::Broadcast(&cells);
    const auto load = [&](const float* values, int v)
        __attribute__((always_inline)) {
      return Load(values + c + v * kLanes, channels.lanes);
    };
    EachSum<kPixels, kVectors>([&](auto m, auto v) __attribute__((
        always_inline)) { sums[m][v] = Step::End(sums[m][v], count); });
    if (t.scale != nullptr) {
      EachSum<kPixels, kVectors>([&](auto m,
                                     auto v) __attribute__((always_inline)) {
        sums[m][v] = Vector::MultiplyAdd(
            sums[m][v], load(t.scale, v),
            t.bias == nullptr ? Vector::Zero() : load(t.bias, v));
      });
    } else if (t.bias != nullptr) {
      EachSum<kPixels, kVectors>([&](auto m,
                                     auto v) __attribute__((always_inline)) {
        sums[m][v] = Vector::Add(sums[m][v], load(t.bias, v));
      });
    }
    tile.Rectify(t.rectifier);
    float* out = t.out + pixel * t.out_stride + c;
    EachSum<kPixels, kVectors>([&](auto m,
                                   auto v) __attribute__((always_inline)) {
      float* const to = out + m * t.out_stride + v * kLanes;
      if (channels.lanes == kLanes) {
        Vector::Store(to, sums[m][v]);
      } else {
        Vector::StoreSome(to, sums[m][v], channels.lanes);
      }
    });
  }

  template <int kPixels, int kVectors, int kRun>
  static void AllChannels(const FloatWindow& t, int64_t pixel) {
    int64_t c = 0;
    for (; c + kVectors * kLanes <= t.channels; c += kVectors * kLanes) {
      Block<kPixels, kVectors, kRun>(t, pixel, {c, kLanes});
    }
    // What is left of whole blocks is little: one loop for all of it.
    for (; c < t.channels; c += kLanes) {
      const int64_t lanes = t.channels - c < kLanes ? t.channels - c : kLanes;
      Block<kPixels, 1, 1>(t, pixel, {c, static_cast<int>(lanes)});
    }
  }

  // Runs of five have so many weights that registers hold fewer vectors.
  template <int kRun>
  static OPTFARM_INLINE void RunPixels(const FloatWindow& t) {
    constexpr bool kIsLong = kRun > 3;
    constexpr int kVectors = kIsLong ? (kLine + 1) / 2 : kLine;
    constexpr int kPixels = kIsLong ? 7 : kMostPixels;
    int64_t pixel = 0;
    for (; pixel + kPixels <= t.pixels; pixel += kPixels) {
      AllChannels<kPixels, kVectors, kRun>(t, pixel);
    }
    // Many that are left are computed with some of those before them.
    if (pixel > 0 && t.pixels - pixel > kPixels / 2) {
      pixel = t.pixels;
      AllChannels<kPixels, kVectors, kRun>(t, pixel - kPixels);
    }
    for (; pixel < t.pixels; ++pixel) AllChannels<1, kMostVectors, 1>(t, pixel);
  }

  static void Run(const FloatWindow& t) {
    if constexpr (Step::kHasWeights) {
      if (t.run == 3) return RunPixels<3>(t);
      if (t.run == 5) return RunPixels<5>(t);
    }
    RunPixels<1>(t);
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
