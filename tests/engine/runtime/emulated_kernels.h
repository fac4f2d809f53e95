// Micro-kernels for instruction sets that this machine need not have, in plain
// C++: the arithmetic of one instruction is emulated, the rest is what the real
// kernel does. They show that kernels of other shapes fit the table: each is
// one entry, and packing, drivers and sinks take it as it is.

#ifndef OPTFARM_TESTS_ENGINE_RUNTIME_EMULATED_KERNELS_H_
#define OPTFARM_TESTS_ENGINE_RUNTIME_EMULATED_KERNELS_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "engine/runtime/ukernels/int8/int8_gemm.h"
#include "engine/runtime/ukernels/micro_kernel.h"
#include "tests/engine/runtime/emulated_amx.h"

namespace optfarm::runtime {

// Arm's i8mm. usmmla multiplies 2 x 8 unsigned by 8 x 2 signed values into a
// block of 2 x 2 accumulators.
namespace emulated_i8mm {

inline constexpr int kMr = 8, kNr = 16, kKr = 8;

struct Block {
  int32_t of[2][2];
};

// a: two rows of eight; b: two channels of eight.
inline void Usmmla(const uint8_t (&a)[16], const int8_t* b, Block* block) {
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 2; ++c) {
      uint32_t sum = static_cast<uint32_t>(block->of[r][c]);
      for (int k = 0; k < 8; ++k) {
        sum += static_cast<uint32_t>(a[r * 8 + k] * b[c * 8 + k]);
      }
      block->of[r][c] = static_cast<int32_t>(sum);
    }
  }
}

inline void AddTap(const Int8GemmTile& tile, int64_t tap, int rows, int row,
                   const int8_t* weights, Block (&blocks)[kNr / 2]) {
  const uint8_t* const* inputs = tile.indirection + tap * rows;
  // A row of its own stands in for one that does not exist.
  const uint8_t* upper = inputs[row];
  const uint8_t* lower = inputs[row + 1 < rows ? row + 1 : row];
  for (int64_t k = 0; k < tile.DepthOf(tap, kKr); k += kKr) {
    uint8_t a[16];
    std::memcpy(a, upper + k, 8);
    std::memcpy(a + 8, lower + k, 8);
    for (int c = 0; c < kNr; c += 2) {
      Usmmla(a, weights + k * kNr + c * kKr, &blocks[c / 2]);
    }
  }
}

inline void Run(const Int8GemmTile& tile, int rows) {
  for (int row = 0; row < rows; row += 2) {
    const int count = rows - row < 2 ? 1 : 2;
    Block blocks[kNr / 2];
    for (int c = 0; c < kNr; ++c) {
      for (int r = 0; r < count; ++r) {
        blocks[c / 2].of[r][c % 2] =
            static_cast<int32_t>(static_cast<uint32_t>(tile.init[c]) +
                                 static_cast<uint32_t>(tile.row_init[row + r]));
      }
      if (count == 1) blocks[c / 2].of[1][c % 2] = 0;
    }
    const int8_t* weights = tile.weights;
    for (int64_t tap = 0; tap < tile.all_taps(); ++tap) {
      AddTap(tile, tap, rows, row, weights, blocks);
      weights += tile.DepthOf(tap, kKr) * kNr;
    }
    for (int c = 0; c < kNr; ++c) {
      for (int r = 0; r < count; ++r) {
        tile.out[(row + r) * kNr + c] = blocks[c / 2].of[r][c % 2];
      }
    }
  }
}

}  // namespace emulated_i8mm

// Pairs along the depth of activations less 128, which are added in 16 bits
// where no weight is -128, as Arm's smull and smlal do it; groups that are cut
// into runs, and tiles of another height and width than any entry's of the
// table. Rows are packed one behind the other, each group twice.
namespace pairs {

inline constexpr int kMr = 5, kCopies = 2;
inline constexpr PanelLayout kPanel = {.nr = 48, .kr = 4, .run = 2, .block = 4};
inline constexpr int kNr = kPanel.nr, kKr = kPanel.kr;

inline int32_t Products(const uint8_t* values, const int8_t* weights,
                        bool fit) {
  const int32_t sum =
      (values[0] - 128) * weights[0] + (values[1] - 128) * weights[1];
  return fit ? static_cast<int16_t>(sum) : sum;
}

inline void Pack(const Int8GemmTile& tile, int rows, int64_t first_tap) {
  for (int r = 0; r < rows; ++r) {
    uint8_t* to =
        tile.packed + r * tile.packed_stride + first_tap * tile.depth * kCopies;
    for (int64_t tap = first_tap; tap < tile.all_taps(); ++tap) {
      const uint8_t* from = tile.indirection[tap * rows + r];
      for (int64_t k = 0; k < tile.DepthOf(tap, kKr); k += kKr) {
        for (int copy = 0; copy < kCopies; ++copy, to += kKr) {
          std::memcpy(to, from + k, kKr);
        }
      }
    }
  }
}

inline void Run(const Int8GemmTile& tile, int rows) {
  for (int r = 0; r < rows; ++r) {
    uint32_t sums[kNr];
    for (int c = 0; c < kNr; ++c) {
      sums[c] = static_cast<uint32_t>(tile.init[c]) +
                static_cast<uint32_t>(tile.row_init[r]);
    }
    const int8_t* weights = tile.weights;
    const uint8_t* values = tile.packed + r * tile.packed_stride;
    for (int64_t k = 0; k < tile.WholeDepth(kKr); k += kKr) {
      for (int i = 0; i < kNr * kKr; i += kPanel.run) {
        const int c = i / kPanel.run % kNr, at = i / kPanel.run / kNr * 2;
        sums[c] += static_cast<uint32_t>(Products(
            values + c % kCopies * kKr + at,
            weights + PlaceInGroup(kPanel, c, at), !tile.has_least_weight));
      }
      weights += kNr * kKr;
      values += kKr * kCopies;
    }
    std::memcpy(tile.out + r * kNr, sums, sizeof(sums));
  }
}

}  // namespace pairs

inline constexpr MicroKernel kInt8GemmEmulatedI8mm = {
    .name = "int8_gemm_emulated_i8mm",
    .kind = MicroKernelKind::kInt8Gemm,
    .mr = emulated_i8mm::kMr,
    .panel = {.nr = emulated_i8mm::kNr, .kr = emulated_i8mm::kKr},
    .epilogue = kStoresAccumulators,
    .run = {.int8_gemm = emulated_i8mm::Run},
};

inline constexpr MicroKernel kInt8GemmPairs = {
    .name = "int8_gemm_pairs",
    .kind = MicroKernelKind::kInt8Gemm,
    .mr = pairs::kMr,
    .panel = pairs::kPanel,
    .activations = ActivationLayout::kPacked,
    .pack = pairs::Pack,
    .packed_copies = pairs::kCopies,
    .activation_shift = 128,
    .epilogue = kStoresAccumulators,
    .run = {.int8_gemm = pairs::Run},
};

namespace {

std::vector<const MicroKernel*> EmulatedKernels() {
  return {&kInt8GemmEmulatedI8mm, &kInt8GemmEmulatedAmx, &kInt8GemmPairs};
}

}  // namespace

}  // namespace optfarm::runtime

#endif  // OPTFARM_TESTS_ENGINE_RUNTIME_EMULATED_KERNELS_H_
