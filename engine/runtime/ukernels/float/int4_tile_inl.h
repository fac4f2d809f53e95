// int4_tile.h for any vector type. V has, besides what float tiles need of it
// (vector_*_inl.h):
//   Words                             kLanes words of 32 bits
//   LoadWords(p)                      kLanes words
//   Codes<kPlace>(words)              codes at bit 4 * kPlace as floats, over
//                                     the place's input factor
//   Code(words, place)                codes as they are
//   kInputFactors                     Int4Tiles::input_factors
//   LoadZeros(p)                      kLanes bytes as floats
//   MultiplySubtract(a, b, sum)       sum - a * b, rounded once
//   Multiply(a, b)

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_INT4_TILE_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_INT4_TILE_INL_H_

#include <cstdint>
#include <utility>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/float/int4_tile.h"

namespace optfarm::runtime {
namespace {

using Int4Places = std::make_integer_sequence<int, kInt4Group>;

template <typename V>
constexpr int kInt4Vectors = kInt4Width / V::kLanes;

// kHeight rows by kPanels panels.
template <typename V, int kHeight, int kPanels>
struct Int4TileOf {
  using Register = typename V::Register;
  using Words = typename V::Words;
  static constexpr int kVectors = kInt4Vectors<V>;
  static constexpr int kAll = kVectors * kPanels;

  const float* in[kHeight];
  // Of each panel.
  const uint32_t* codes[kPanels];
  Register sums[kHeight][kAll];

  OPTFARM_INLINE void AddVector(Register codes_of_all, int64_t k, int v) {
#pragma GCC unroll 8
    for (int m = 0; m < kHeight; ++m) {
      sums[m][v] =
          V::MultiplyAdd(V::Broadcast(in[m] + k), codes_of_all, sums[m][v]);
    }
  }

  // Words are read again for each place: registers hold sums, and no sum waits
  // for the one before it.
  template <int kPlace>
  OPTFARM_INLINE void AddPlace(int64_t k) {
#pragma GCC unroll 16
    for (int v = 0; v < kAll; ++v) {
      AddVector(V::template Codes<kPlace>(WordsOf(v)), k + kPlace, v);
    }
  }

  template <int... kPlaces>
  OPTFARM_INLINE void AddGroup(int64_t k,
                               std::integer_sequence<int, kPlaces...>) {
    (AddPlace<kPlaces>(k), ...);
    NextGroup();
  }

  OPTFARM_INLINE Words WordsOf(int v) const {
    return V::LoadWords(codes[v / kVectors] + v % kVectors * V::kLanes);
  }
  OPTFARM_INLINE void NextGroup() {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) codes[p] += kInt4Width;
  }

  // Fewer than a group.
  OPTFARM_INLINE void AddSome(int64_t k, int count) {
#pragma GCC unroll 16
    for (int v = 0; v < kAll; ++v) {
      const Words words = WordsOf(v);
      for (int place = 0; place < count; ++place) {
        Register all = V::Code(words, place);
        if (V::kInputFactors != nullptr) {
          // A power of two: exact.
          all = V::Divide(all, V::Broadcast(V::kInputFactors + place));
        }
        AddVector(all, k + place, v);
      }
    }
    NextGroup();
  }

  // Adds the block's sums to what is stored; `block` is its number.
  OPTFARM_INLINE void AddToOut(const Int4Tile& t, int64_t block,
                               int64_t blocks) {
#pragma GCC unroll 16
    for (int v = 0; v < kAll; ++v) {
      const int64_t at = (v / kVectors * blocks + block) * kInt4Width +
                         v % kVectors * V::kLanes;
      const Register scale = V::Load(t.panel.scales + at);
      const Register zero = V::LoadZeros(t.panel.zeros + at);
#pragma GCC unroll 8
      for (int m = 0; m < kHeight; ++m) {
        float* const out = t.out + m * t.row_stride + v * V::kLanes;
        const Register shifted = V::MultiplySubtract(
            V::Broadcast(t.sums[m] + block), zero, sums[m][v]);
        V::Store(out, V::MultiplyAdd(scale, shifted,
                                     block == 0 ? V::Zero() : V::Load(out)));
      }
    }
  }

  OPTFARM_INLINE void Clear() {
#pragma GCC unroll 8
    for (int m = 0; m < kHeight; ++m) {
#pragma GCC unroll 16
      for (int v = 0; v < kAll; ++v) sums[m][v] = V::Zero();
    }
  }

  static void Run(const Int4Tile& t) {
    Int4TileOf tile;
    const int64_t depth = t.panel.depth, block = t.panel.block;
    const int64_t blocks = (depth + block - 1) / block;
    const int64_t groups = (depth + kInt4Group - 1) / kInt4Group;
    for (int m = 0; m < kHeight; ++m) tile.in[m] = t.inputs[m];
    for (int p = 0; p < kPanels; ++p) {
      tile.codes[p] = t.panel.codes + p * groups * kInt4Width;
    }
    int64_t k = 0;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t end = (b + 1) * block < depth ? (b + 1) * block : depth;
      tile.Clear();
      for (; k + kInt4Group <= end; k += kInt4Group) {
        tile.AddGroup(k, Int4Places());
      }
      if (k < end) tile.AddSome(k, static_cast<int>(end - k));
      k = end;
      tile.AddToOut(t, b, blocks);
    }
  }
};

template <typename V, int... kHeights>
void RunInt4Tile(const Int4Tile& tile,
                 std::integer_sequence<int, kHeights...>) {
  using Function = void (*)(const Int4Tile&);
  static constexpr Function kTiles[] = {
      &Int4TileOf<V, kHeights + 1, 1>::Run...};
  kTiles[tile.rows - 1](tile);
}

template <typename V>
void UnpackInt4(const Int4Panel& panel, int64_t first, int64_t count,
                float* out, int64_t stride) {
  for (int64_t b = first; b < first + count; ++b) {
    const int64_t begin = b * panel.block;
    const int64_t end =
        begin + panel.block < panel.depth ? begin + panel.block : panel.depth;
    typename V::Register scale[kInt4Vectors<V>], zero[kInt4Vectors<V>];
    for (int v = 0; v < kInt4Vectors<V>; ++v) {
      const int64_t at = b * kInt4Width + v * V::kLanes;
      scale[v] = V::Load(panel.scales + at);
      zero[v] = V::LoadZeros(panel.zeros + at);
    }
    for (int64_t k = begin; k < end; ++k, out += stride) {
      const uint32_t* const words = panel.codes + k / kInt4Group * kInt4Width;
      for (int v = 0; v < kInt4Vectors<V>; ++v) {
        const typename V::Register code =
            V::Code(V::LoadWords(words + v * V::kLanes),
                    static_cast<int>(k % kInt4Group));
        V::Store(out + v * V::kLanes,
                 V::Multiply(V::Subtract(code, zero[v]), scale[v]));
      }
    }
  }
}

}  // namespace
}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_INT4_TILE_INL_H_
