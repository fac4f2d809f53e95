// One tile for any vector type, written so that the compiler keeps the sums in
// registers: all indexes are constants. Vector has
//   kLanes, Register, Zero(), Broadcast(float), Load(p), LoadSome(p, n),
//   Store(p, r), StoreSome(p, r, n), MultiplyAdd(a, b, sum), Add(a, b),
//   Max(a, b), Divide(a, b), Relu(a), Cap6(a), Prefetch(p)
// and lives in an unnamed namespace, so that its code is nobody else's.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_TILE_INL_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_TILE_INL_H_

#include <cstdint>
#include <utility>

#include "engine/runtime/ukernels/always_inline.h"
#include "engine/runtime/ukernels/float/float_tile.h"

namespace optfarm::runtime {

template <typename Vector, int kRows, int kVectors>
struct TileOf {
  using Register = typename Vector::Register;
  static constexpr int kLanes = Vector::kLanes;

  Register sums[kRows][kVectors];

  // Calls body with the constants 0 .. kCount - 1.
  template <int kCount, typename Body>
  static OPTFARM_INLINE void Each(Body body) {
    EachOf(body, std::make_integer_sequence<int, kCount>());
  }
  template <typename Body, int... kNumbers>
  static OPTFARM_INLINE void EachOf([[maybe_unused]] Body body,
                                    std::integer_sequence<int, kNumbers...>) {
    (body(std::integral_constant<int, kNumbers>()), ...);
  }

  OPTFARM_INLINE void Clear() {
    Each<kRows>([&](auto m) __attribute__((always_inline)) {
      Each<kVectors>([&](auto v) __attribute__((always_inline)) {
        sums[m][v] = Vector::Zero();
      });
    });
  }

  // Adds what one row of weights gives; `at` counts within a run.
  OPTFARM_INLINE void AddRow(const float* const* in, int64_t at,
                             const float* weights) {
    Register w[kVectors];
    Each<kVectors>([&](auto v) __attribute__((always_inline)) {
      w[v] = Vector::Load(weights + v * kLanes);
    });
    Each<kRows>([&](auto m) __attribute__((always_inline)) {
      const Register x = Vector::Broadcast(in[m] + at);
      Each<kVectors>([&](auto v) __attribute__((always_inline)) {
        sums[m][v] = Vector::MultiplyAdd(x, w[v], sums[m][v]);
      });
    });
  }

  OPTFARM_INLINE void AddAll(const FloatTile& t) {
    const float* weights = t.weights;
    const char* prefetch = t.prefetch;
    const float* const* inputs = t.inputs;
    for (int64_t tap = 0; tap < t.taps; ++tap, inputs += kRows) {
      const float* in[kRows];
      Each<kRows>([&](auto m)
                      __attribute__((always_inline)) { in[m] = inputs[m]; });
      for (int64_t at = 0; at < t.run; ++at) {
        AddRow(in, at, weights);
        weights += kVectors * kLanes;
        Vector::Prefetch(prefetch);
        prefetch += t.prefetch_step;
      }
    }
  }

  // As AddAll, for one row by several panels of two vectors; where the number
  // of vectors is odd, the last panel has one.
  OPTFARM_INLINE void AddPanels(const FloatTile& t, int64_t panel_stride) {
    static_assert(kRows == 1);
    constexpr int kWhole = kVectors / 2 * 2;
    const float* weights = t.weights;
    const float* narrow = t.weights + kWhole / 2 * panel_stride;
    for (int64_t tap = 0; tap < t.taps; ++tap) {
      const float* in = t.inputs[tap];
      for (int64_t at = 0; at < t.run; ++at) {
        const Register x = Vector::Broadcast(in + at);
        Each<kWhole>([&](auto v) __attribute__((always_inline)) {
          const Register w =
              Vector::Load(weights + v / 2 * panel_stride + v % 2 * kLanes);
          sums[0][v] = Vector::MultiplyAdd(x, w, sums[0][v]);
        });
        weights += 2 * kLanes;
        if constexpr (kWhole < kVectors) {
          sums[0][kWhole] =
              Vector::MultiplyAdd(x, Vector::Load(narrow), sums[0][kWhole]);
          narrow += kLanes;
        }
      }
    }
  }

  OPTFARM_INLINE void ScaleAndAddBias(const float* scale, const float* bias) {
    Each<kVectors>([&](auto v) __attribute__((always_inline)) {
      const Register s = Vector::Load(scale + v * kLanes);
      const Register b =
          bias == nullptr ? Vector::Zero() : Vector::Load(bias + v * kLanes);
      Each<kRows>([&](auto m) __attribute__((always_inline)) {
        sums[m][v] = Vector::MultiplyAdd(sums[m][v], s, b);
      });
    });
  }

  OPTFARM_INLINE void AddBias(const float* bias) {
    Each<kVectors>([&](auto v) __attribute__((always_inline)) {
      const Register b = Vector::Load(bias + v * kLanes);
      Each<kRows>([&](auto m) __attribute__((always_inline)) {
        sums[m][v] = Vector::Add(sums[m][v], b);
      });
    });
  }

  OPTFARM_INLINE void Rectify(Rectifier rectifier) {
    if (rectifier == Rectifier::kNone) return;
    Each<kRows>([&](auto m) __attribute__((always_inline)) {
      Each<kVectors>([&](auto v) __attribute__((always_inline)) {
        sums[m][v] = Vector::Relu(sums[m][v]);
      });
    });
    if (rectifier != Rectifier::kRelu6) return;
    Each<kRows>([&](auto m) __attribute__((always_inline)) {
      Each<kVectors>([&](auto v) __attribute__((always_inline)) {
        sums[m][v] = Vector::Cap6(sums[m][v]);
      });
    });
  }

  OPTFARM_INLINE void RunEpilogue(const FloatTile& t) {
    Scale(t);
    if (t.columns == kVectors * kLanes) {
      StoreWhole(t);
    } else {
      RunPartialEpilogue(t);
    }
  }

  OPTFARM_INLINE void Scale(const FloatTile& t) {
    if (t.scale != nullptr) {
      ScaleAndAddBias(t.scale, t.bias);
    } else if (t.bias != nullptr) {
      AddBias(t.bias);
    }
  }

  // All columns, with the residual and the rectifier.
  OPTFARM_INLINE void StoreWhole(const FloatTile& t) {
    if (t.residual != nullptr) {
      Each<kRows>([&](auto m) __attribute__((always_inline)) {
        Each<kVectors>([&](auto v) __attribute__((always_inline)) {
          const Register r =
              Vector::Load(t.residual + m * t.row_stride + v * kLanes);
          sums[m][v] = Vector::Add(sums[m][v], r);
        });
      });
    }
    Rectify(t.rectifier);
    Each<kRows>([&](auto m) __attribute__((always_inline)) {
      Each<kVectors>([&](auto v) __attribute__((always_inline)) {
        Vector::Store(t.out + m * t.row_stride + v * kLanes, sums[m][v]);
      });
    });
  }

  OPTFARM_INLINE void RunPartialEpilogue(const FloatTile& t) {
    Each<kVectors>([&](auto v) __attribute__((always_inline)) {
      const int left = t.columns - v * kLanes;
      const int lanes = left < 0 ? 0 : left > kLanes ? kLanes : left;
      if (t.residual == nullptr || lanes == 0) return;
      Each<kRows>([&](auto m) __attribute__((always_inline)) {
        const Register r =
            Vector::LoadSome(t.residual + m * t.row_stride + v * kLanes, lanes);
        sums[m][v] = Vector::Add(sums[m][v], r);
      });
    });
    Rectify(t.rectifier);
    Each<kVectors>([&](auto v) __attribute__((always_inline)) {
      const int left = t.columns - v * kLanes;
      const int lanes = left < 0 ? 0 : left > kLanes ? kLanes : left;
      if (lanes == 0) return;
      Each<kRows>([&](auto m) __attribute__((always_inline)) {
        Vector::StoreSome(t.out + m * t.row_stride + v * kLanes, sums[m][v],
                          lanes);
      });
    });
  }

  // Has what will be added or overwritten brought near while products are
  // added.
  static OPTFARM_INLINE void FetchResult(const FloatTile& t) {
    const float* result = t.residual != nullptr ? t.residual : t.out;
    Each<kRows>([&](auto m) __attribute__((always_inline)) {
      const float* row = result + m * t.row_stride;
      Each<(kVectors * kLanes + 15) / 16>([&](
          auto line) __attribute__((always_inline)) {
        Vector::Prefetch(reinterpret_cast<const char*>(row + line * 16));
      });
    });
  }

  static void Run(const FloatTile& t) {
    FetchResult(t);
    TileOf tile;
    tile.Clear();
    tile.AddAll(t);
    tile.RunEpilogue(t);
  }
};

template <typename Vector, int kVectors>
void RunRowOfVectors(const FloatTile& t, int64_t panel_stride) {
  TileOf<Vector, 1, kVectors> tile;
  tile.Clear();
  tile.AddPanels(t, panel_stride);
  tile.RunEpilogue(t);
}

// One row by panels of two vectors.
template <typename Vector, int... kNumbers>
void RunRowOfPanels(const FloatTile& t, int64_t panel_stride,
                    std::integer_sequence<int, kNumbers...>) {
  using Function = void (*)(const FloatTile&, int64_t);
  static constexpr Function kRuns[] = {
      &RunRowOfVectors<Vector, kNumbers + 1>...};
  kRuns[(t.columns - 1) / Vector::kLanes](t, panel_stride);
}

// kRows rows at a time: the sums are read and written once for all of them.
template <typename Vector, int kRows>
OPTFARM_INLINE void AddSomeRows(const FloatRows& rows, int64_t first,
                                float* sums) {
  constexpr int kLanes = Vector::kLanes;
  const float* in = rows.inputs + first;
  const float* weights = rows.weights + first * rows.row_stride;
  int64_t c = 0;
  for (; c + kLanes <= rows.columns; c += kLanes) {
    auto sum = Vector::Load(sums + c);
    for (int r = 0; r < kRows; ++r) {
      sum = Vector::MultiplyAdd(Vector::Broadcast(in + r),
                                Vector::Load(weights + r * rows.row_stride + c),
                                sum);
    }
    Vector::Store(sums + c, sum);
  }
  const int left = static_cast<int>(rows.columns - c);
  if (left == 0) return;
  auto sum = Vector::LoadSome(sums + c, left);
  for (int r = 0; r < kRows; ++r) {
    sum = Vector::MultiplyAdd(
        Vector::Broadcast(in + r),
        Vector::LoadSome(weights + r * rows.row_stride + c, left), sum);
  }
  Vector::StoreSome(sums + c, sum, left);
}

template <typename Vector>
void AddRows(const FloatRows& rows, float* sums) {
  constexpr int kTogether = 8;
  int64_t row = 0;
  for (; row + kTogether <= rows.count; row += kTogether) {
    AddSomeRows<Vector, kTogether>(rows, row, sums);
  }
  for (; row < rows.count; ++row) AddSomeRows<Vector, 1>(rows, row, sums);
}

// Calls the tile of exactly tile.rows rows.
template <typename Vector, int kVectors, int... kHeights>
void RunTileOfHeight(const FloatTile& tile,
                     std::integer_sequence<int, kHeights...>) {
  using Function = void (*)(const FloatTile&);
  static constexpr Function kTiles[] = {
      &TileOf<Vector, kHeights + 1, kVectors>::Run...};
  kTiles[tile.rows - 1](tile);
}

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_FLOAT_FLOAT_TILE_INL_H_
